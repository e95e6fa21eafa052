create function api.dashboard_message_body(session text, organisation text, message text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
declare
  v_organisation uuid := core.member_of(dashboard_message_body.session, dashboard_message_body.organisation);
  m app.messages := core.message_of(v_organisation, dashboard_message_body.message);
  v_body app.bodies;
begin
  select b.* into v_body from app.bodies b where b.message_id = m.id;
  if v_body.message_id is null then
    perform core.refuse('not_found', words => 'The body of the message has been deleted.');
  end if;
  return jsonb_build_object(
    'channel', m.channel, 'class', m.class, 'tags', m.tags, 'subject', m.subject, 'scheduledAt', core.iso(m.scheduled_at),
    'sender', v_body.sender, 'to', v_body."to", 'cc', v_body.cc, 'bcc', v_body.bcc, 'replyTo', v_body.reply_to,
    'headers', v_body.headers, 'html', v_body.html, 'text', v_body.text);
end
$$;

comment on function api.dashboard_message_body is
  'Returns what was sent: channel, class, tags, subject, scheduledAt, sender, to, cc, bcc, replyTo, headers, html and text. Refuses as core.member_of and core.message_of do, and with not_found once the body is deleted.';
