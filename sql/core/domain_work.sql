create function core.domain_work(d app.domains)
returns jsonb
language sql stable
as $$
  select jsonb_build_object(
    'verdict', 'work',
    'id', d.id,
    'name', d.name,
    'mail_from_label', d.mail_from_label,
    'token', substr(core.encode_id('dom', d.id), 5),
    'dkim_zone', d.dkim_zone,
    'provider', d.provider,
    'records', d.records,
    'keys', (
      select jsonb_agg(jsonb_build_object('selector', k.selector, 'state', k.state, 'value', k.value) order by k.selector)
      from app.dkim_keys k
      where k.domain_id = d.id
    )
  )
$$;

comment on function core.domain_work is
  'Returns the fields of api.domain_work with which the service calls the provider and DNS.';
