-- One statement, because each of its steps needs all columns of the one before.
create function core.judge_sms(calls core.checked_call[], items jsonb, at timestamptz)
returns core.judged_sms[]
language plpgsql volatile
as $$
declare
  v_shared_sender text := (select s.shared_sender from app.sms_settings s);
begin
  return array(
    with sms as (
      select i.*, c.n, c.organisation_id, c.mode, c.is_paused, c.backlog, c.sms_allowance, c.sms_credits,
        c.test_limit, c.test_allowance, c.period_start, core.new_id(judge_sms.at) as id,
        coalesce(i.sender_id, v_shared_sender) as sender,
        core.sms_problems(c.organisation_id, nullif(i.sender_id, v_shared_sender), i.scheduled_at, judge_sms.at) as problems
      from jsonb_populate_recordset(null::core.accept_sms, items) with ordinality as i
      join unnest(calls) c on c.n = i.call and c.verdict is null
    ),
    -- Refusals for the SMS itself, and what it costs.
    checked as (
      select s.*,
        case
          when s.error is not null then s.error ->> 'code'
          when s.problems is not null then 'validation_error'
          when s.is_paused then 'org_paused'
        end as code,
        case when s.is_sandbox is true then 0 else s.segments end as price,
        s.mode = 'test' or s.is_sandbox is true as is_free,
        -- Test calls take nothing, so each of them starts from the whole balance.
        case s.mode when 'test' then s.n end as test_call
      from sms s
    ),
    -- Whether allowance and credits are enough: counted among SMS that nothing else refuses.
    counted as (
      select c.*,
        core.fits(c.price, c.sms_allowance::bigint + c.sms_credits, c.n) over (
          partition by c.organisation_id, c.mode, c.code order by c.n, c.index) as fits,
        count(*) filter (where c.is_free) over (
          partition by c.organisation_id, c.code order by c.n, c.index) as free_place
      from checked c
    ),
    refused as (
      select c.*,
        case
          when c.code is not null then c.code
          when c.is_free and c.free_place > c.test_allowance then 'rate_limited'
          when c.mode = 'live' and not c.fits then 'insufficient_credits'
        end as refusal,
        sum(c.price) filter (where c.fits) over (
          partition by c.organisation_id, c.mode, c.code order by c.n, c.index) as fitted
      from counted c
    ),
    -- How many of its segments credits pay for, once the plan is used up.
    priced as (
      select p.*, least(p.price, greatest(0, p.taken - p.sms_allowance))::integer as credits
      from (
        select r.*,
          sum(r.price) over (partition by r.organisation_id, r.test_call, r.refusal order by r.n, r.index) as taken
        from refused r
      ) p
    )
    select row(
      p.ordinality, p.n, p.index, p.id, p.organisation_id, p.mode, p.class, p.sender,
      case
        when p.mode = 'test' then case when obstacle.code is null then 'sent' else 'rejected' end
        when p.scheduled_at is not null then 'scheduled'
        else 'queued'
      end,
      p.scheduled_at,
      -- Beyond the reach of the clock's next sweep, as in core.send_later.
      p.scheduled_at > judge_sms.at + interval '90 seconds',
      p.is_free, p.price, p.credits, p.sms_credits - greatest(0, p.taken - p.sms_allowance), p.period_start, p.backlog,
      obstacle.code, obstacle.reason, p.refusal,
      case p.refusal
        when 'insufficient_credits' then
          format('This SMS needs %s; %s of the plan and %s are left.', core.counted(p.price, 'segment'),
            greatest(0, p.sms_allowance - coalesce(p.fitted, 0)),
            core.counted(p.sms_credits - greatest(0, coalesce(p.fitted, 0) - p.sms_allowance), 'credit'))
        when 'rate_limited' then core.test_limit_words(p.test_limit)
      end,
      case p.refusal when 'rate_limited' then
        ceil(extract(epoch from date_trunc('day', judge_sms.at, 'UTC') + interval '24 hours' - judge_sms.at)) end,
      case p.refusal when 'validation_error' then p.problems end,
      p.error,
      format('{"id":"%s","status":"%s","segments":%s,"credits":%s%s}', core.encode_id('sm', p.id),
        case when p.scheduled_at is null then 'queued' else 'scheduled' end, p.segments, p.credits,
        -- The other marketing rules depend on when it is sent; the text does not change.
        case when p.refusal is null and p.class = 'marketing' and not core.has_opt_out_footer(p.body) then
          format(',"warning":{"code":"opt_out_footer_missing","message":%s}', to_json(core.opt_out_footer_missing()))
        end)
    )::core.judged_sms
    from priced p
    -- The marketing rules reject a test message here; a live one is judged when it is released.
    left join lateral (
      select m.*
      from core.marketing_obstacle(p.organisation_id, p.recipient, p.body, coalesce(p.scheduled_at, judge_sms.at)) m
      where p.refusal is null and p.mode = 'test' and p.class = 'marketing'
      -- Without it, Postgres may evaluate the rules for every SMS and then compare these conditions.
      offset 0
    ) obstacle on true
    order by p.n, p.index);
end
$$;

comment on function core.judge_sms is
  'Decide which SMS of these calls are accepted, and what each costs, as if they had come one by one, in the order of n and index. The organisations must be locked.';
