create function core.count_stray_receipts(receipts jsonb)
returns void
language sql volatile
as $$
  insert into app.stray_receipts as s (day, provider, receipts, last_message_id, last_at)
  select (core.now() at time zone 'UTC')::date, split_part(r.provider_event_id, ':', 1), count(*),
    (array_agg(r.message_id order by r.message_id desc))[1], core.now()
  from jsonb_to_recordset(receipts) as r (message_id uuid, provider_event_id text)
  group by 2
  order by 2
  on conflict (day, provider) do update
    set receipts = s.receipts + excluded.receipts, last_message_id = excluded.last_message_id, last_at = excluded.last_at
$$;

comment on function core.count_stray_receipts is
  'Count receipts that were ignored because they name a recipient that the email was not sent to.';
