create function api.dashboard_domains(session text, organisation text, cursor text default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_page constant integer := 20;
  v_organisation uuid := core.member_of(dashboard_domains.session, dashboard_domains.organisation);
  -- One more than is shown shows whether there are more.
  v_domains app.domains[] := array(
    select row(d.*)::app.domains
    from app.domains d
    where d.organisation_id = v_organisation and d.change is distinct from 'adding'
      and d.id < coalesce(core.decode_id('dom', dashboard_domains.cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by d.id desc
    limit c_page + 1);
begin
  return jsonb_build_object(
    'held', (select count(*) from app.domains d where d.organisation_id = v_organisation),
    'included', (
      select p.domains_included
      from app.organisations o
      join app.plans p on p.id = o.plan_id
      where o.id = v_organisation),
    'domains', coalesce((
      select jsonb_agg(core.domain_object(d)::jsonb || jsonb_build_object(
          'isManuallyVerified', d.is_manually_verified,
          'isBeingRemoved', d.change is not null,
          'wrongSince', core.iso(d.wrong_since),
          'failsAt', core.iso(core.domain_fails_at(d)),
          'nextCheckAt', core.iso(d.next_check_at)) order by d.id desc)
      from unnest(v_domains[:c_page]) d), '[]'),
    'nextCursor', case when cardinality(v_domains) > c_page then core.encode_id('dom', v_domains[c_page].id) end);
end
$$;

comment on function api.dashboard_domains is
  'Returns 20 domains of an organisation after the cursor, newest first, and how many it holds of those that its plan includes: {held, included, domains, nextCursor}. Each is the domain object with isManuallyVerified, isBeingRemoved, wrongSince, failsAt (core.domain_fails_at) and nextCheckAt. Refuses as core.member_of does.';
