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
    -- By the key: the views would read the rows of all organisations.
    select jsonb_build_object(
      'organisation', to_jsonb(o),
      'plans', (select jsonb_agg(p.id order by p.price_rand, p.id) from app.plans p),
      'keys', (
        select coalesce(jsonb_agg(jsonb_build_object(
            'prefix', k.prefix, 'mode', k.mode, 'scopes', k.scopes, 'last_used_on', k.last_used_on,
            'revoked_at', k.revoked_at) order by k.revoked_at desc nulls first, k.created_at desc), '[]')
        from app.api_keys k where k.organisation_id = v_id),
      'members', (
        select coalesce(jsonb_agg(jsonb_build_object('email', u.email, 'role', m.role) order by m.role desc, u.email), '[]')
        from app.members m
        join app.users u on u.id = m.user_id
        where m.organisation_id = v_id),
      'ledger', (
        select coalesce(jsonb_agg(jsonb_build_object(
            'id', l.id, 'kind', l.kind, 'credits', l.credits, 'balance', l.balance, 'note', l.note,
            'created_at', l.created_at) order by l.id desc), '[]')
        from (
          select c.* from app.credit_ledger c where c.organisation_id = v_id order by c.id desc limit 20
        ) l))
    from ops.organisations o
    where v_id is not null and o.id = dashboard_organisation.organisation);
end
$$;

comment on function api.dashboard_organisation is
  'Returns an organisation for operators: its row of ops.organisations (organisation), keys [{prefix, mode, scopes, last_used_on, revoked_at}], members [{email, role}], the 20 newest movements of the ledger [{id, kind, credits, balance, note, created_at}], and the IDs of plans; null if there is none. Refuses as core.operator_of does.';
