create function api.dashboard_keys(session text, organisation text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_keys.session, dashboard_keys.organisation);
begin
  return coalesce((
    select jsonb_agg(jsonb_build_object(
        'prefix', k.prefix, 'mode', k.mode, 'scopes', k.scopes, 'createdAt', core.iso(k.created_at),
        'lastUsedOn', k.last_used_on, 'revokedAt', core.iso(k.revoked_at))
      order by k.revoked_at desc nulls first, k.id desc)
    from app.api_keys k
    where k.organisation_id = v_organisation), '[]');
end
$$;

comment on function api.dashboard_keys is
  'Returns the API keys of an organisation, valid ones first: [{prefix, mode, scopes, createdAt, lastUsedOn, revokedAt}]. Refuses as core.member_of does.';
