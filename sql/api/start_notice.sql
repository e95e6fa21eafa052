create function api.start_notice(id uuid, from_domain text)
returns setof api.notice
language sql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
  with mine as materialized (
    select n.id, n.attempt_started_at as ambiguous_since
    from app.notices n
    where n.id = start_notice.id and n.sent_at is null and n.failed_at is null
      -- The link in it has expired.
      and not (n.kind = 'sign_in' and n.created_at < core.now() - interval '15 minutes')
    for no key update
  ),
  started as (
    update app.notices n
    set attempts = n.attempts + 1, attempt_started_at = core.now()
    from mine i
    where n.id = i.id
    returning n.*, i.ambiguous_since
  )
  select s.id, s.kind, s.detail, s.created_at, s.organisation_id, o.name, coalesce(s.email, o.owner_email),
    s.attempts::integer, core.now(), s.ambiguous_since, k.selector, k.private_key
  from started s
  left join app.organisations o on o.id = s.organisation_id
  left join app.domains d on d.name = start_notice.from_domain and d.status = 'verified'
  left join app.dkim_keys k on k.domain_id = d.id and k.state = 'active' and k.private_key is not null
$$;

comment on function api.start_notice is
  'Start an attempt to send a notice to an owner or a user, with the DKIM key of the sending domain if the service holds one. The caller commits before it calls the provider. Returns no row if the notice was sent or has failed permanently, or if its link has expired.';
