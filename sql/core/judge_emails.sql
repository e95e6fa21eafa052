-- One statement, because each of its steps needs all columns of the one before.
create function core.judge_emails(
  calls core.checked_call[], items jsonb, sized core.sized_email[], at timestamptz
)
returns core.judged_email[]
language plpgsql volatile
as $$
declare
  v_hour timestamptz := date_trunc('hour', judge_emails.at, 'UTC');
  -- Addresses an hour: refusals that named more would tell anybody which addresses do not exist.
  c_named_hourly constant integer := 500;
begin
  return array(
    -- Refusals for the email itself.
    with checked as materialized (
      -- Some columns of core.accept_email: its texts would be copied from step to step.
      select i.*, c.n, c.organisation_id, c.mode, c.email_allowance, c.backlog, c.emails_included, c.period_end,
        c.test_limit, c.test_allowance, c.mode = 'test' or i.is_sandbox is true as is_unpaid,
        (sized[i.ordinality]).fields as template_problems,
        case
          when i.error is not null then i.error ->> 'code'
          when (sized[i.ordinality]).fields is not null then 'validation_error'
          when c.is_paused then 'org_paused'
          when c.mode = 'live' and not exists (select from core.sending_domains(c.organisation_id, i.from_domain))
            then 'domain_not_verified'
        end as code
      from rows from (jsonb_to_recordset(items) as (
        call integer, index integer, error jsonb, class app.class, from_domain text, recipients text[], is_sandbox boolean
      )) with ordinality as i
      join unnest(calls) c on c.n = i.call and c.verdict is null
    ),
    -- Suppressed recipients: three look-ups for each, so only of emails that nothing else refuses.
    found as (
      select c.*, s.named, s.foreign_addresses,
        c.code is null and s.named is null and not c.is_unpaid as is_counted,
        c.code is null and s.named is null and c.is_unpaid as is_free
      from checked c
      cross join lateral (
        select jsonb_agg(s.email || ': ' || s.reason order by s.email) as named,
          count(*) filter (where s.is_foreign) as foreign_addresses
        from core.suppressed(c.organisation_id, c.recipients, c.class) s
        where c.code is null and c.mode = 'live'
      ) s
    ),
    -- Whether the allowance is enough: counted among emails that nothing else refuses, the free ones apart.
    counted as (
      select f.*,
        core.fits(cardinality(f.recipients), f.email_allowance, f.ordinality::integer)
          filter (where f.is_counted) over arrival as fits,
        count(*) filter (where f.is_free) over arrival as free_place,
        case when f.named is not null then
          sum(f.foreign_addresses) over arrival + coalesce((
            select b.addresses from app.named_bounces b where b.organisation_id = f.organisation_id and b.hour = v_hour
          ), 0) > c_named_hourly
        end as is_beyond
      from found f
      window arrival as (partition by f.organisation_id order by f.n, f.index)
    ),
    refused as (
      select c.*,
        case
          when c.code is not null then c.code
          when c.is_beyond then 'rate_limited'
          when c.named is not null then 'recipient_suppressed'
          when c.is_free and c.free_place > c.test_allowance then 'rate_limited'
          when c.is_counted and not c.fits then
            -- An accepted email and plan_allowance_exceeded would still tell which addresses bounced.
            case when exists (
              select from app.named_bounces b
              where b.organisation_id = c.organisation_id and b.hour = v_hour and b.addresses > c_named_hourly
            ) then 'rate_limited' else 'plan_allowance_exceeded' end
        end as refusal,
        sum(cardinality(c.recipients)) filter (where c.is_counted and c.fits) over (
          partition by c.organisation_id order by c.n, c.index) as taken
      from counted c
    )
    select row(
      r.ordinality, r.n, r.index, core.new_id(judge_emails.at), r.organisation_id, r.mode, r.class,
      cardinality(r.recipients), r.is_free, r.backlog, r.foreign_addresses, r.is_beyond, r.refusal,
      case r.refusal
        when 'domain_not_verified' then
          format('%s is not verified for this organisation; add the domain, or send from a verified one.', r.from_domain)
        when 'plan_allowance_exceeded' then
          format('This email needs %s of the plan''s %s, and %s left until %s; nothing was queued.',
            cardinality(r.recipients), core.counted(r.emails_included, 'email'),
            core.counted(greatest(0, r.email_allowance - coalesce(r.taken, 0)), 'is', 'are'), core.iso(r.period_end))
        when 'rate_limited' then case
          when r.is_free then core.test_limit_words(r.test_limit)
          else format('Refusals name at most %s addresses an hour that bounced for other senders; retry after %s.',
            c_named_hourly, core.iso(v_hour + interval '1 hour')) end
      end,
      case r.refusal when 'rate_limited' then
        ceil(extract(epoch from case
          when r.is_free then date_trunc('day', judge_emails.at, 'UTC') + interval '24 hours'
          else v_hour + interval '1 hour' end - judge_emails.at)) end,
      case r.refusal
        when 'validation_error' then r.template_problems
        when 'recipient_suppressed' then jsonb_build_object('to', r.named)
      end,
      r.error
    )::core.judged_email
    from refused r);
end
$$;

comment on function core.judge_emails is
  'Decide which emails of these calls are accepted, as if they had come one by one, in the order of n and index. The organisations must be locked. sized: of core.size_emails, by place.';
