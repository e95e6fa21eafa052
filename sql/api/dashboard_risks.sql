create function api.dashboard_risks(session text, report text, after text default '')
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_risks.session);
  return coalesce(case dashboard_risks.report
    when 'domains' then (select jsonb_agg(to_jsonb(d)) from (select * from ops.domains_at_risk limit 500) d)
    when 'endpoints' then (
      select jsonb_agg(to_jsonb(e) order by e.id)
      from (
        -- Not the column missed, which counts thousands for each.
        select f.id, f.organisation, f.url, f.state, f.failing_since, f.last_error, f.disables_at,
          core.missed_events(core.find_webhook_endpoint(f.id), 101) as missed
        from ops.failing_endpoints f
        where f.id > dashboard_risks.after
        order by f.id
        limit core.page_rows() + 1
      ) e)
  end, '[]');
end
$$;

comment on function api.dashboard_risks is
  'Returns a report for operators: domains (up to 500 rows of ops.domains_at_risk) or endpoints (a page of ops.failing_endpoints and one more (core.page_rows), with IDs above after; missed is counted up to 101). Refuses as core.operator_of does.';
