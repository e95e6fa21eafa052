create function api.dashboard_usage(session text, organisation text, statements_before timestamptz default null)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_usage.session, dashboard_usage.organisation);
begin
  return jsonb_build_object(
    'usage', core.usage_object(v_organisation),
    'days', core.usage_by_day(v_organisation),
    'statements', coalesce((
      select jsonb_agg(jsonb_build_object(
          'start', core.iso(s.period_start), 'end', core.iso(s.period_end),
          'planName', s.plan_name, 'priceRand', s.price_rand,
          'emailsUsed', s.emails_used, 'emailsIncluded', s.emails_included,
          'smsUsed', s.sms_used, 'smsIncluded', s.sms_included, 'credits', s.sms_credits)
        order by s.period_start desc)
      from (
        select c.* from app.closed_periods c
        where c.organisation_id = v_organisation
          and (dashboard_usage.statements_before is null or c.period_start < dashboard_usage.statements_before)
        order by c.period_start desc
        limit 51
      ) s), '[]'));
end
$$;

comment on function api.dashboard_usage is
  'Returns the usage of an organisation: usage (core.usage_object), days (core.usage_by_day), and statements, the closed billing periods that began before statements_before (null: all), newest first, at most 51: [{start, end, planName, priceRand, emailsUsed, emailsIncluded, smsUsed, smsIncluded, credits}]. Refuses as core.member_of does.';
