create function core.why_scheduled(m app.messages, o app.organisations)
returns text
language sql stable
as $$
  select format('The message is scheduled for %s%s.', core.iso(m.scheduled_at), case
    when o.state = 'paused' then format('; its organisation %s has been paused since %s: %s; unless it is resumed by then, the message waits',
      core.encode_id('org', o.id), core.iso(core.state_since(o)), core.state_reason(o))
    when o.state = 'suspended' then format('; its organisation %s has been suspended since %s: %s; unless it is reinstated by then, the message is rejected',
      core.encode_id('org', o.id), core.iso(core.state_since(o)), core.state_reason(o))
    when m.class = 'marketing' then (
      select '; it would be rejected at that time: ' || rtrim(x.reason, '.')
      from app.bodies b
      cross join core.marketing_obstacle(m.organisation_id, m.to_address, b.text, m.scheduled_at) x
      where b.message_id = m.id and x.code is not null)
  end)
$$;

comment on function core.why_scheduled is 'Returns the sentence of ops.why about an SMS whose scheduled time has not come.';
