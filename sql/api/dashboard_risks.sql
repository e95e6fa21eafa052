create function api.dashboard_risks(session text, report text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_risks.session);
  return coalesce(case dashboard_risks.report
    when 'domains' then (select jsonb_agg(to_jsonb(d)) from (select * from ops.domains_at_risk limit 500) d)
    when 'endpoints' then (select jsonb_agg(to_jsonb(e)) from (select * from ops.failing_endpoints limit 500) e)
    when 'ledger' then (
      select jsonb_agg(to_jsonb(l) order by l.is_balanced, l.organisation)
      from (select * from ops.ledger_check c order by c.is_balanced, c.organisation limit 500) l)
  end, '[]');
end
$$;

comment on function api.dashboard_risks is
  'Returns up to 500 rows of a report for operators: domains (ops.domains_at_risk), endpoints (ops.failing_endpoints) or ledger (ops.ledger_check, unbalanced first). Refuses as core.operator_of does.';
