create function core.why_scheduled(m app.messages, o app.organisations)
returns text
language sql stable
as $$
  select format('It is scheduled for %s%s.', core.iso(m.scheduled_at), case
    when o.state = 'paused' then format('; its organisation %s is paused since %s: %s; unless it is resumed by then, it waits',
      core.encode_id('org', o.id), core.iso(core.state_since(o)), core.state_reason(o))
    when o.state = 'suspended' then format('; its organisation %s is suspended since %s: %s; unless it is reinstated by then, it is rejected',
      core.encode_id('org', o.id), core.iso(core.state_since(o)), core.state_reason(o))
    when m.class = 'marketing' then (
      select '; as things are, it will be rejected then: ' || rtrim(x.reason, '.')
      from app.bodies b
      cross join core.marketing_obstacle(m.organisation_id, m.to_address, b.text, m.scheduled_at) x
      where b.message_id = m.id and x.code is not null)
  end)
$$;

comment on function core.why_scheduled is 'What ops.why says of an SMS whose time has not come.';
