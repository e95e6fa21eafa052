create function core.index_accepted(after uuid, until uuid, at_most integer)
returns uuid[]
language plpgsql volatile
set enable_seqscan = off
set jit = off
as $$
declare
  v_ids uuid[] := array(
    select m.id from app.messages m where m.id > after and m.id < until order by m.id limit at_most);
  v_last_id uuid := v_ids[cardinality(v_ids)];
begin
  if v_last_id is null then
    return '{}';
  end if;
  perform core.add_terms(array(
    select row(m.organisation_id, t.term, m.id, m.place)::core.message_term
    from (
      select m.*, row_number() over (partition by m.organisation_id order by m.id) as place
      from app.messages m
      where m.id between v_ids[1] and v_last_id
    ) m
    cross join lateral (
      select core.kind_term(m.channel, m.class, m.mode) as term
      union all
      select core.kind_term(m.channel, m.class, m.mode, m.status) where core.is_rare_status(m.status::text)
      union all
      select 'from:' || lower(m.from_address)
      union all
      select 'tag:' || g.tag from (select distinct unnest(m.tags)) g (tag)
      union all
      select core.recipient_term(r.recipient) from unnest(string_to_array(lower(m.to_address), ', ')) r (recipient)
    ) t));
  -- Copies (cc, bcc) are not in to_address. Once the body is deleted, receipts still name them.
  perform core.add_terms(array(
    select row(m.organisation_id, core.recipient_term(r.recipient), m.id, null)::core.message_term
    from (
      select b.message_id, unnest(b.recipients) as recipient
      from app.bodies b
      where b.message_id between v_ids[1] and v_last_id and cardinality(b.recipients) > 1
      union
      select e.message_id, lower(e.detail ->> 'recipient')
      from app.events e
      join app.messages c on c.id = e.message_id and c.recipients > 1
      where e.message_id between v_ids[1] and v_last_id and c.id between v_ids[1] and v_last_id
        and e.detail ? 'recipient' and not exists (select from app.bodies b where b.message_id = c.id)
    ) r
    join app.messages m on m.id = r.message_id and m.id between v_ids[1] and v_last_id
    where m.channel = 'email' and m.recipients > 1 and strpos(r.recipient, '@') > 0));
  return v_ids;
end
$$;

comment on function core.index_accepted is
  'Add the next messages after an ID and before another to the index of the search: recipients, senders, tags, kinds, and statuses that are rare. Returns their IDs, at most at_most.';
