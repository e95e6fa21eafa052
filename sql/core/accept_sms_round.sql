-- Design section 5 for SMS, in one statement as core.accept_emails_round does it for emails.
create function core.accept_sms_round(calls jsonb, items jsonb, catalogue jsonb, turn integer)
returns setof core.answer
language plpgsql volatile
-- Both settings as core.accept_emails_round has them.
set enable_seqscan = off
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  v_shared_sender text := (select s.shared_sender from app.sms_settings s);
begin
  return query
  with call as materialized (
    select * from core.check_calls(calls, accept_sms_round.turn, v_now)
  ),
  item as materialized (
    select i.*, c.n, c.organisation_id, c.mode, c.is_paused, c.backlog, c.sms_allowance, c.sms_credits,
      c.test_limit, c.test_allowance, c.period_start, core.new_id(v_now) as id, coalesce(i.sender_id, v_shared_sender) as sender,
      core.sms_problems(c.organisation_id, nullif(i.sender_id, v_shared_sender), i.scheduled_at, v_now) as problems
    from jsonb_to_recordset(items) as i (
      call integer, index integer, error jsonb, class app.class, sender_id text, recipient text, body text,
      segments integer, scheduled_at timestamptz, tags text[], is_sandbox boolean
    )
    join call c on c.n = i.call and c.answer is null
  ),
  judged as (
    select i.*,
      case
        when i.error is not null then i.error ->> 'code'
        when i.problems is not null then 'validation_error'
        when i.is_paused then 'org_paused'
      end as code,
      case when i.is_sandbox is true then 0 else i.segments end as price,
      i.mode = 'test' or i.is_sandbox is true as is_free,
      -- Test calls take nothing, so each of them starts from what is there.
      case i.mode when 'test' then i.n end as test_call
    from item i
  ),
  counted as (
    select j.*,
      core.fits_until_short(j.price, j.sms_allowance::bigint + j.sms_credits, j.n) over (
        partition by j.organisation_id, j.mode, j.code order by j.n, j.index) as fits,
      count(*) filter (where j.is_free) over (
        partition by j.organisation_id, j.code order by j.n, j.index) as free_place
    from judged j
  ),
  outcome as (
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
  placed as (
    select o.*,
      sum(o.price) over (partition by o.organisation_id, o.test_call, o.refusal order by o.n, o.index) as taken,
      row_number() over (partition by o.organisation_id, o.mode, o.refusal order by o.n, o.index) as place
    from outcome o
  ),
  priced as materialized (
    select p.*, least(p.price, greatest(0, p.taken - p.sms_allowance))::integer as credits
    from placed p
  ),
  accepted as materialized (
    select p.*, obstacle.code as obstacle, obstacle.reason,
      case
        when p.mode = 'test' then case when obstacle.code is null then 'sent' else 'rejected' end
        when p.scheduled_at is not null then 'scheduled'
        else 'queued'
      end::app.message_status as status,
      p.mode = 'live' and p.price > 0 as is_paid,
      -- Beyond the reach of the clock's next sweep, as in core.send_later.
      p.scheduled_at > v_now + interval '90 seconds' as is_far
    from priced p
    -- Live ones are judged when they are released.
    left join lateral (
      select m.*
      from core.marketing_obstacle(p.organisation_id, p.recipient, p.body, coalesce(p.scheduled_at, v_now)) m
      where p.mode = 'test' and p.class = 'marketing'
    ) obstacle on true
    where p.refusal is null
  ),
  new_messages as (
    insert into app.messages (
      status, id, organisation_id, channel, mode, class, from_address, to_address, tags, recipients,
      created_at, sent_at, error_code, error_message, is_sandbox, segments, credits, scheduled_at
    )
    select a.status, a.id, a.organisation_id, 'sms', a.mode, a.class, a.sender, a.recipient, a.tags, 1,
      v_now, case a.status when 'sent' then v_now end, a.obstacle, a.reason, a.is_sandbox is true,
      a.segments, a.credits, a.scheduled_at
    from accepted a
  ),
  counted_in_reports as (
    insert into app.status_changes (message_id, change, occurred_at)
    select a.id, 'queued', v_now
    from accepted a
    where a.mode = 'live' and a.is_sandbox is not true
  ),
  new_bodies as (
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, text)
    select a.id, a.sender, array[a.recipient], '{}', '{}', array[a.recipient], a.body
    from accepted a
    -- Nobody can see the body of a test message.
    where a.mode = 'live'
  ),
  new_events as (
    insert into app.events (message_id, type, occurred_at, detail)
    select a.id, 'rejected', v_now, jsonb_build_object('code', a.obstacle, 'text', a.reason)
    from accepted a
    where a.status = 'rejected'
  ),
  paid as (
    insert into app.credit_ledger (organisation_id, kind, credits, included, balance, period_start, message_id, created_at)
    select a.organisation_id, 'sms', -a.credits, a.credits - a.price,
      a.sms_credits - greatest(0, a.taken - a.sms_allowance), a.period_start, a.id, v_now
    from accepted a
    where a.is_paid
    order by a.n, a.index
  ),
  used as (
    update app.allowances a
    set sms_used = a.sms_used + u.included, sms_credits = a.sms_credits - u.credits,
      messages_accepted = a.messages_accepted + u.messages,
      test_messages = u.free + case when a.test_day = u.day then a.test_messages else 0 end, test_day = u.day
    from (
      select organisation_id, coalesce(sum(credits) filter (where mode = 'live'), 0) as credits,
        coalesce(sum(price - credits) filter (where mode = 'live'), 0) as included,
        count(*) filter (where mode = 'live' and scheduled_at is null) as messages,
        count(*) filter (where is_free) as free, (v_now at time zone 'UTC')::date as day
      from accepted
      group by organisation_id
    ) u
    where a.organisation_id = u.organisation_id
  ),
  waiting as (
    insert into app.due_messages (message_id, organisation_id, due_at, priority, late_at)
    select a.id, a.organisation_id, a.scheduled_at, core.priority(a.backlog + a.place, a.class),
      core.late_at(a.scheduled_at)
    from accepted a
    where a.mode = 'live' and a.is_far
  ),
  enqueued as (
    select core.add_jobs(array_agg(core.send_job(
      'sms', a.id, core.priority(a.backlog + a.place, a.class), now() + (a.scheduled_at - v_now)) order by a.n, a.index))
    from accepted a
    where a.mode = 'live' and a.is_far is not true
  ),
  result as (
    select array_agg(row(
      p.n, p.index, p.refusal,
      case p.refusal
        when 'insufficient_credits' then
          format('This SMS needs %s segments; %s of the plan and %s credits are left.', p.price,
            greatest(0, p.sms_allowance - coalesce(p.fitted, 0)),
            p.sms_credits - greatest(0, coalesce(p.fitted, 0) - p.sms_allowance))
        when 'rate_limited' then core.test_limit_words(p.test_limit)
      end,
      case p.refusal when 'rate_limited' then
        ceil(extract(epoch from date_trunc('day', v_now, 'UTC') + interval '24 hours' - v_now)) end,
      case p.refusal when 'validation_error' then p.problems end, p.error,
      format('{"id":"%s","status":"%s","segments":%s,"credits":%s%s}', core.encode_id('sm', p.id),
        case when p.scheduled_at is null then 'queued' else 'scheduled' end, p.segments, p.credits,
        -- The other rules of marketing depend on when it is sent; the text does not change.
        case when p.refusal is null and p.class = 'marketing' and not core.has_opt_out_footer(p.body) then
          format(',"warning":{"code":"opt_out_footer_missing","message":%s}', to_json(core.opt_out_footer_missing()))
        end)
    )::core.outcome) as outcomes
    from priced p
  )
  select a.*
  from result r
  cross join enqueued
  cross join lateral core.respond_to_calls(array(select c::core.checked_call from call c), r.outcomes, catalogue, v_now) a;
end
$$;

comment on function core.accept_sms_round is
  'Judge, record, charge and enqueue the SMS of the calls whose turn it is. The organisations must be locked.';
