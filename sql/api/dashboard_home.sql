create function api.dashboard_home(session text, organisation text)
returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_home.session, dashboard_home.organisation);
  v_today date := (core.now() at time zone 'UTC')::date;
begin
  return (
    select jsonb_build_object(
      'plan', jsonb_build_object('name', p.name, 'emailsIncluded', p.emails_included, 'smsIncluded', p.sms_included),
      'usage', jsonb_build_object('periodEnd', core.iso(u.period_end), 'emailsUsed', u.emails_used,
        'smsUsed', u.sms_used, 'smsCredits', u.sms_credits),
      'domains', (
        select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('dom', d.id), 'name', d.name, 'status', d.status,
          'wrongRecords', core.wrong_records(d.records), 'wrongSince', core.iso(d.wrong_since)) order by d.name)
        from app.domains d
        where d.organisation_id = v_organisation and d.change is distinct from 'adding' and not d.is_manually_verified
          and (d.status <> 'verified' or d.wrong_since is not null)),
      'hasDomain', exists (select from app.domains d where d.organisation_id = v_organisation and d.status = 'verified'),
      'endpoints', (
        select jsonb_agg(jsonb_build_object(
          'id', core.encode_id('we', e.id), 'url', e.url, 'failingSince', core.iso(e.failing_since),
          'disabledAt', core.iso(e.disabled_at), 'lastError', e.last_error) order by e.url)
        from app.webhook_endpoints e
        where e.organisation_id = v_organisation and (e.disabled_at is not null or e.failing_since is not null)),
      'hasKey', exists (
        select from app.api_keys k where k.organisation_id = v_organisation and k.revoked_at is null),
      'hasMessages', exists (select from app.messages m where m.organisation_id = v_organisation),
      'days', (
        select jsonb_agg(jsonb_build_object(
          'day', g.day::date, 'accepted', coalesce(v.accepted, 0), 'sent', coalesce(v.sent, 0),
          'delivered', coalesce(v.delivered, 0), 'bounced', coalesce(v.bounced, 0),
          'complained', coalesce(v.complained, 0), 'failed', coalesce(v.failed, 0),
          'emailsSent', coalesce(v.emails_sent, 0), 'emailsBounced', coalesce(v.emails_bounced, 0)) order by g.day)
        from generate_series(v_today - 29, v_today, interval '1 day') as g (day)
        left join (
          select d.day, sum(d.accepted) as accepted, sum(d.sent) as sent, sum(d.delivered) as delivered,
            sum(d.bounced) as bounced, sum(d.complained) as complained, sum(d.failed + d.expired + d.rejected) as failed,
            sum(d.sent) filter (where d.channel = 'email') as emails_sent,
            sum(d.bounced) filter (where d.channel = 'email') as emails_bounced
          from (
            select x.* from app.daily_volume x where x.organisation_id = v_organisation and x.day >= v_today - 29
            -- Of the same snapshot, so that no change counts twice.
            union all select u.* from core.unsummed_volume(v_organisation) u) d
          where d.tag is null
          group by d.day
        ) v on v.day = g.day::date))
    from app.organisations o
    join app.plans p on p.id = o.plan_id
    cross join lateral core.current_usage(o.id) u
    where o.id = v_organisation);
end
$$;

comment on function api.dashboard_home is
  'Returns the home page of an organisation: plan, usage of the period, domains and endpoints that need attention (null if none), hasDomain, hasKey, hasMessages, and the outcomes of the messages accepted on each of the last 30 UTC days, with those of the newest messages that the clock has not summed yet. Refuses as core.member_of does.';
