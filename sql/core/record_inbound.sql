create function core.record_inbound(messages jsonb, is_forwarded boolean default false)
returns text[]
language plpgsql volatile
as $$
declare
  v_item record;
  v_opt_outs jsonb := '[]';
  v_outcomes text[] := '{}';
  v_unknown jsonb := '[]';
begin
  -- Replies are rare, so one transaction at a time records them. The second of two STOPs then sees the first,
  -- and no other order of the locks below is possible.
  perform pg_advisory_xact_lock(hashtextextended('postgram inbound', 0));

  for v_item in
    select i.provider, i."from" as phone, i."to" as sender, i.keyword, i.word, i.received_at, a.*
    from jsonb_populate_recordset(null::core.keyword_sms, messages) with ordinality as i (provider, "from", "to", keyword, word, received_at, place)
    cross join lateral core.sms_replied_to(i."from", i."to") a
    order by i.place
  loop
    -- A sender that is not a number in E.164, such as a short code, cannot have received marketing.
    if v_item.organisation_id is null or not core.is_phone(v_item.phone)
      or exists (select from app.moved_organisations d where d.organisation_id = v_item.organisation_id) then
      v_outcomes := v_outcomes || 'unknown'::text;
      if core.is_phone(v_item.phone) then
        v_unknown := v_unknown || jsonb_build_object('provider', v_item.provider, 'from', v_item.phone, 'to', v_item.sender,
          'keyword', v_item.keyword, 'word', v_item.word, 'received_at', v_item.received_at,
          'organisation_id', v_item.organisation_id);
      end if;
      continue;
    end if;
    v_outcomes := v_outcomes || 'unchanged'::text;
    -- An erased person who has opted out before is not stored again.
    continue when exists (
      select from core.suppressions_by_hash(v_item.phone) a
      where a.organisation_id = v_item.organisation_id and a.reason = 'opted_out');
    if v_item.keyword = 'stop' then
      insert into app.consents as c (organisation_id, phone, opted_out_at, opted_out_by)
      values (v_item.organisation_id, v_item.phone, v_item.received_at, v_item.word)
      on conflict (organisation_id, phone) do update
        set opted_out_at = excluded.opted_out_at, opted_out_by = excluded.opted_out_by
        where c.opted_out_at is null;
      if found then
        v_opt_outs := v_opt_outs || to_jsonb(v_item);
      end if;
    else
      update app.consents c
      set opted_out_at = null, opted_out_by = null
      where c.organisation_id = v_item.organisation_id and c.phone = v_item.phone
        and c.consented_at is not null and c.opted_out_at is not null;
    end if;
    if found then
      v_outcomes[cardinality(v_outcomes)] := 'changed';
    end if;
  end loop;

  perform core.record_receipts((
    select jsonb_agg(jsonb_build_object(
      'message_id', o.message_id, 'provider_event_id', concat_ws(':', o.provider, 'inbound', o.received_at),
      'type', 'opted_out', 'occurred_at', o.received_at, 'word', o.word))
    from jsonb_to_recordset(v_opt_outs) as o (message_id uuid, provider text, received_at text, word text)
    where o.message_id is not null));
  perform core.confirm_opt_outs(v_opt_outs);
  if not is_forwarded then
    perform core.forward_receipts('keyword', v_unknown);
  end if;
  return v_outcomes;
end
$$;

comment on function core.record_inbound is
  'Record replies with a keyword (core.keyword_sms), in their order. Gives those of an unknown organisation, or of one that moved to another cell, to the other cells, unless one of them sent them (is_forwarded). Returns an outcome for each: changed, unchanged (already in that state) or unknown (no organisation found).';
