create function core.record_complaints(receipts core.stored_receipt[])
returns void
language plpgsql volatile
as $$
declare
  v_organisations uuid[];
begin
  with counted as (
    insert into app.complaints (organisation_id, message_id, recipient, received_at, emails_sent)
    select m.organisation_id, m.id, lower(coalesce(e.detail ->> 'recipient', '')), core.now(), d.emails_sent
    from unnest(receipts) e
    join app.messages m on m.id = e.message_id and not m.is_sandbox
    join app.counters d on d.organisation_id = m.organisation_id
    on conflict do nothing
    returning organisation_id
  )
  select array_agg(distinct c.organisation_id) into v_organisations from counted c;
  perform core.pause_for_complaints(v_organisations);
end
$$;

comment on function core.record_complaints is
  'Count stored complaints, each recipient of a message once, and pause organisations with too many. The caller has locked the organisations.';
