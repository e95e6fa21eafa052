create function core.confirm_opt_outs(opt_outs jsonb)
returns void
language plpgsql volatile
as $$
declare
  v_now timestamptz := core.now();
  v_jobs graphile_worker.job_spec[];
begin
  perform core.lock_organisations(array(
    select o.organisation_id from jsonb_to_recordset(opt_outs) as o (organisation_id uuid)));

  with confirmation as materialized (
    select core.new_id(v_now) as id, o.*
    from jsonb_to_recordset(opt_outs) as o (organisation_id uuid, phone text, sender text, is_sandbox boolean)
    -- The number may have been revoked since, or belong to the network.
    where o.sender like '+%' and (
      exists (select from app.senders s where (s.organisation_id, s.sender) = (o.organisation_id, o.sender))
      or exists (select from app.sms_settings s where s.shared_sender = o.sender))
  ),
  new_messages as (
    insert into app.messages (
      status, id, organisation_id, channel, mode, class, from_address, to_address, tags, recipients, created_at,
      is_sandbox, segments, credits
    )
    select 'queued', c.id, c.organisation_id, 'sms', 'live', 'transactional', c.sender, c.phone,
      '{opt-out-confirmation}', 1, v_now, c.is_sandbox, 1, 0
    from confirmation c
  ),
  new_bodies as (
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, text)
    select c.id, c.sender, array[c.phone], '{}', '{}', array[c.phone],
      -- GSM-7 only, so that it is one segment.
      'You have opted out and will get no more marketing messages from this sender.'
    from confirmation c
  ),
  counted as (
    update app.allowances a
    set messages_accepted = a.messages_accepted + c.messages
    from (select c.organisation_id, count(*) as messages from confirmation c group by c.organisation_id) c
    where a.organisation_id = c.organisation_id
  )
  select array_agg(core.send_job('sms', c.id, core.priority(core.backlog(c.organisation_id), 'transactional')))
    into v_jobs
  from confirmation c;
  perform core.add_jobs(v_jobs);
end
$$;

comment on function core.confirm_opt_outs is
  'Send one SMS, free of charge, to each phone that opted out: {organisation_id, phone, sender (the sender ID that the phone wrote to), is_sandbox}. Skips alphanumeric sender IDs, which phones cannot reply to.';
