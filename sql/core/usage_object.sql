create function core.usage_object(organisation_id uuid)
returns json
language sql stable
as $$
  select json_build_object(
    'plan', json_build_object('id', p.id, 'name', p.name, 'priceRand', p.price_rand),
    'period', json_build_object('start', core.iso(u.period_start), 'end', core.iso(u.period_end)),
    'emails', json_build_object('used', u.emails_used, 'included', p.emails_included,
      'remaining', greatest(0, p.emails_included - u.emails_used)),
    'sms', json_build_object('used', u.sms_used, 'included', p.sms_included,
      'remaining', greatest(0, p.sms_included - u.sms_used), 'credits', u.sms_credits),
    'domains', json_build_object('included', p.domains_included,
      'used', (select count(*) from app.domains d where d.organisation_id = o.id))
  )
  from app.organisations o
  join app.plans p on p.id = o.plan_id
  cross join lateral core.current_usage(o.id) u
  where o.id = usage_object.organisation_id
$$;

comment on function core.usage_object is
  'Returns the usage object of an organisation. If the usage exceeds the plan, as after a change to a smaller plan, 0 remains.';
