create function api.dashboard_ledger(session text, is_whole boolean default false)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform core.operator_of(dashboard_ledger.session);
  if dashboard_ledger.is_whole then
    return (
      select coalesce(jsonb_agg(to_jsonb(l) order by l.organisation), '[]')
      from (select c.* from ops.ledger_check c where not c.is_balanced limit core.page_rows()) l);
  end if;
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
        'organisation', core.encode_id('org', c.organisation_id),
        'sms_credits', c.sms_credits, 'ledger_credits', c.ledger_credits) order by c.organisation_id), '[]')
    from (
      select a.organisation_id, a.sms_credits, coalesce(l.balance, 0) as ledger_credits
      from app.allowances a
      left join lateral (
        select l.balance from app.credit_ledger l where l.organisation_id = a.organisation_id order by l.id desc limit 1
      ) l on true
      where a.sms_credits <> coalesce(l.balance, 0)
      limit core.page_rows()
    ) c);
end
$$;

comment on function api.dashboard_ledger is
  'Returns a page of organisations (core.page_rows) whose credits do not agree with the ledger: [{organisation, sms_credits, ledger_credits}] by the newest balance of each; with is_whole the rows of ops.ledger_check that are not balanced, for which the whole ledger is read. Refuses as core.operator_of does.';
