create function api.dashboard_organisation(session text, organisation text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid := core.decode_id('org', dashboard_organisation.organisation);
begin
  perform core.operator_of(dashboard_organisation.session);
  return (
    select jsonb_build_object(
      'organisation', to_jsonb(o),
      'plans', (select jsonb_agg(p.id order by p.price_rand, p.id) from app.plans p),
      'keys', (
        select coalesce(jsonb_agg(to_jsonb(k) order by k.revoked_at desc nulls first, k.created_at desc), '[]')
        from ops.api_keys k where k.organisation = o.id),
      'members', (
        select coalesce(jsonb_agg(to_jsonb(m) order by m.role desc, m.email), '[]')
        from ops.members m where m.organisation = o.id),
      'ledger', (
        select coalesce(jsonb_agg(to_jsonb(l)), '[]')
        from (select c.* from ops.credit_ledger c where c.organisation = o.id limit 20) l))
    from ops.organisations o
    where v_id is not null and o.id = dashboard_organisation.organisation);
end
$$;

comment on function api.dashboard_organisation is
  'Returns an organisation for operators: rows of ops.organisations, api_keys (keys), members and the newest of credit_ledger (ledger), and the IDs of plans; null if there is none. Refuses as core.operator_of does.';
