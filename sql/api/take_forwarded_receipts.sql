create function api.take_forwarded_receipts()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind text;
  v_contents jsonb;
  v_count integer;
begin
  -- Rows of one kind at a call, because each kind takes its locks in an order of its own.
  select f.kind into v_kind
  from app.forwarded_receipts f
  where f.cell <> core.cell_number() and f.taken_at is null
  order by f.received_at
  limit 1;
  if v_kind is null then
    return 0;
  end if;
  with next as materialized (
    select f.cell, f.id
    from app.forwarded_receipts f
    where f.cell <> core.cell_number() and f.taken_at is null and f.kind = v_kind
    order by f.received_at
    limit case v_kind when 'unsubscribe' then 1 else 1000 end
    for update skip locked
  ),
  taken as (
    update app.forwarded_receipts f
    set taken_at = core.now()
    from next n
    where (f.cell, f.id) = (n.cell, n.id)
    returning f.content, f.received_at
  )
  select count(*), jsonb_agg(t.content order by t.received_at) filter (
    -- What names an organisation is for the cell that has it.
    where t.content ->> 'organisation_id' is null or exists (
      select from app.organisations o
      where o.id = (t.content ->> 'organisation_id')::uuid
        and not exists (select from app.moved_organisations d where d.organisation_id = o.id)))
    into v_count, v_contents
  from taken t;

  if v_contents is null then
    return v_count;
  end if;
  case v_kind
    when 'receipt' then perform core.record_receipts(v_contents, is_forwarded => true);
    when 'sms_receipt' then perform core.record_sms_receipts(v_contents, is_forwarded => true);
    when 'keyword' then perform core.record_inbound(v_contents, is_forwarded => true);
    when 'unsubscribe' then
      perform core.unsubscribe(u.organisation_id, u.email, u.message_id)
      from jsonb_to_recordset(v_contents) as u (organisation_id uuid, email text, message_id uuid);
  end case;
  return v_count;
end
$$;

comment on function api.take_forwarded_receipts is
  'Record what other cells received for this one, at most 1 000 rows of one kind. Ignores what is about messages that this cell does not know, which another cell has. Returns how many rows; the caller repeats the call until it returns 0.';
