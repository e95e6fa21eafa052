create function api.dashboard_message(session text, organisation text, message text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  -- A search among more jobs for that of the message takes longer than a page should.
  c_jobs constant bigint := 5000;
  v_organisation uuid := core.member_of(dashboard_message.session, dashboard_message.organisation);
  m app.messages := core.message_of(v_organisation, dashboard_message.message);
  v_body app.bodies;
  v_why text;
begin
  select b.* into v_body from app.bodies b where b.message_id = m.id;
  if m.status in ('queued', 'scheduled') then
    v_why := (select w.reason || '.' from core.why_message(m, c_jobs) w);
  end if;
  return core.message_object(m)::jsonb || jsonb_build_object(
    'mode', m.mode,
    'provider', m.provider,
    'attempts', m.attempts,
    'isSandbox', m.is_sandbox,
    'version', core.message_version(m),
    'mayChange', core.may_change(m),
    'canRetry', m.mode = 'live' and (
      m.status = 'queued'
      or m.status = 'scheduled' and m.scheduled_at <= core.now()
      or m.status = 'failed' and m.channel = 'email' and m.sent_at is null and v_body.message_id is not null),
    'why', v_why,
    'events', core.timeline(m),
    'deliveries', core.deliveries_of(m),
    'body', case when v_body.message_id is not null then jsonb_build_object(
      'sender', v_body.sender, 'to', v_body."to", 'cc', v_body.cc, 'bcc', v_body.bcc, 'replyTo', v_body.reply_to,
      'headers', v_body.headers, 'hasHtml', v_body.html is not null, 'hasText', v_body.text is not null) end,
    'recipients', case when m.channel = 'email' then (
      select jsonb_agg(jsonb_build_object('email', r.email, 'suppressed', s.reason) order by r.place)
      from unnest(coalesce(v_body.recipients, string_to_array(lower(m.to_address), ', ')))
        with ordinality r (email, place)
      left join app.suppressions s on s.organisation_id = v_organisation and s.email = r.email) end);
end
$$;

comment on function api.dashboard_message is
  'Returns all that the page of a message shows: the message object with mode, provider, attempts, isSandbox, version, mayChange, canRetry, why (one sentence if it waits; else null), events, deliveries (core.deliveries_of), body ({sender, to, cc, bcc, replyTo, headers, hasHtml, hasText}; null once deleted) and recipients ([{email, suppressed: reason or null}]; null for an SMS). Refuses as core.member_of and core.message_of do.';
