-- The whole of design section 5 in one statement: who may, what is refused and why, what is written.
-- Refusals are rows, because one exception would undo the other items of the batch.
create function core.accept_emails_round(
  calls jsonb, items jsonb, catalogue jsonb, turn integer, sized core.sized_email[], templates core.parsed_template[]
)
returns setof core.answer
language plpgsql volatile
-- All is reached by its key; a plan made while a table was small must not scan it when it has grown.
set enable_seqscan = off
-- A thousand emails go through sorts; on disk they would take ten times as long.
set work_mem = '32MB'
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  v_hour timestamptz := date_trunc('hour', v_now, 'UTC');
  -- Addresses an hour: refusals that name more would tell anybody which addresses do not exist.
  c_named_hourly constant integer := 500;
begin
  return query
  with call as materialized (
    select * from core.check_calls(calls, accept_emails_round.turn, v_now)
  ),
  item as materialized (
    select i.*, c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.batch, c.is_paused, c.email_allowance, c.backlog,
      c.emails_included, c.period_end, c.test_limit, c.test_allowance, core.new_id(v_now) as id,
      accept_emails_round.sized[i.ordinality] as sized
    from rows from (jsonb_to_recordset(items) as (
      call integer, index integer, error jsonb, class app.class, sender text, from_address text,
      from_domain text, "to" text[], cc text[], bcc text[], to_addresses text, recipients text[],
      reply_to text, subject text, html text, text text, template_id text, variables jsonb,
      headers jsonb, tags text[], is_sandbox boolean
    )) with ordinality as i
    join call c on c.n = i.call and c.answer is null
  ),
  checked as materialized (
    select i.*,
      case
        when i.error is not null then i.error ->> 'code'
        when (i.sized).fields is not null then 'validation_error'
        when i.is_paused then 'org_paused'
        when i.mode = 'live' and not exists (select from core.sending_domains(i.organisation_id, i.from_domain))
          then 'domain_not_verified'
      end as code
    from item i
  ),
  -- Three look-ups for each recipient: only of emails that nothing else refuses.
  suppressed as materialized (
    select s.*,
      sum(s.foreign_addresses) over (partition by s.organisation_id order by s.n, s.index)
        + coalesce((
          select b.addresses from app.named_bounces b where b.organisation_id = s.organisation_id and b.hour = v_hour
        ), 0) > c_named_hourly as is_beyond
    from (
      select c.id, c.organisation_id, c.n, c.index, jsonb_agg(s.email || ': ' || s.reason order by s.email) as named,
        count(*) filter (where s.is_foreign) as foreign_addresses
      from checked c
      cross join lateral core.suppressed(c.organisation_id, c.recipients, c.class) s
      where c.code is null and c.mode = 'live'
      group by c.id, c.organisation_id, c.n, c.index
    ) s
  ),
  judged as (
    select c.*, s.named,
      coalesce(c.code, case when s.is_beyond then 'rate_limited' when s.id is not null then 'recipient_suppressed' end) as verdict
    from checked c
    left join suppressed s on s.id = c.id
  ),
  counted as (
    select j.*,
      -- Of its own partition, so that what is refused or free does not use up what the others need.
      core.fits(cardinality(j.recipients), j.email_allowance) over arrival as fits,
      row_number() over arrival as free_place
    from (
      select j.*, j.verdict is null and not (j.mode = 'test' or j.is_sandbox is true) as is_counted,
        j.verdict is null and (j.mode = 'test' or j.is_sandbox is true) as is_free
      from judged j
    ) j
    window arrival as (partition by j.organisation_id, j.is_counted, j.is_free order by j.n, j.index)
  ),
  outcome as materialized (
    select c.*,
      case
        when c.verdict is not null then c.verdict
        when c.is_free and c.free_place > c.test_allowance then 'rate_limited'
        when c.is_counted and not c.fits then
          -- Told from an accepted email, this would go on to say which addresses bounced.
          case when exists (
            select from app.named_bounces b
            where b.organisation_id = c.organisation_id and b.hour = v_hour and b.addresses > c_named_hourly
          ) then 'rate_limited' else 'plan_allowance_exceeded' end
      end as refusal,
      sum(cardinality(c.recipients)) filter (where c.fits) over (
        partition by c.organisation_id, c.is_counted, c.is_free order by c.n, c.index) as taken
    from counted c
  ),
  accepted as materialized (
    select o.*, row_number() over (partition by o.organisation_id, o.mode order by o.n, o.index) as place
    from outcome o
    where o.refusal is null
  ),
  new_messages as (
    insert into app.messages (
      status, id, organisation_id, channel, mode, class, from_address, to_address, subject, tags,
      recipients, created_at, sent_at, is_sandbox
    )
    select
      case a.mode when 'live' then 'queued' else 'sent' end::app.message_status, a.id,
      a.organisation_id, 'email', a.mode, a.class, a.from_address, a.to_addresses,
      coalesce((a.sized).subject, a.subject), a.tags, cardinality(a.recipients), v_now, case a.mode when 'test' then v_now end,
      a.is_sandbox is true
    from accepted a
  ),
  counted_in_reports as (
    insert into app.status_changes (message_id, change, occurred_at)
    select a.id, 'queued', v_now
    from accepted a
    where a.mode = 'live' and a.is_sandbox is not true
  ),
  new_bodies as (
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, reply_to, html, text, headers)
    select a.id, a.sender, a."to", a.cc, a.bcc, a.recipients, a.reply_to,
      case when a.template_id is null then a.html
        else core.render_template_text(templates[(a.sized).template].html, a.variables, true) end,
      case when a.template_id is null then a.text
        else core.render_template_text(templates[(a.sized).template].text, a.variables, false) end,
      a.headers
    from accepted a
    -- Nobody can see the body of a test message.
    where a.mode = 'live'
  ),
  named as (
    insert into app.named_bounces as b (organisation_id, hour, addresses, exceeded_at)
    select s.organisation_id, v_hour, sum(s.foreign_addresses), max(v_now) filter (where s.is_beyond)
    from suppressed s
    group by s.organisation_id
    having sum(s.foreign_addresses) > 0
    on conflict (organisation_id) do update set
      hour = excluded.hour,
      addresses = excluded.addresses + case when b.hour = excluded.hour then b.addresses else 0 end,
      exceeded_at = coalesce(excluded.exceeded_at, b.exceeded_at)
  ),
  used as (
    update app.allowances a
    set emails_used = a.emails_used + u.recipients, messages_accepted = a.messages_accepted + u.messages,
      test_messages = u.free + case when a.test_day = u.day then a.test_messages else 0 end, test_day = u.day
    from (
      select organisation_id, coalesce(sum(cardinality(recipients)) filter (where is_counted), 0) as recipients,
        count(*) filter (where mode = 'live') as messages, count(*) filter (where is_free) as free,
        (v_now at time zone 'UTC')::date as day
      from accepted
      group by organisation_id
    ) u
    where a.organisation_id = u.organisation_id
  ),
  enqueued as (
    select core.add_jobs(array_agg(core.send_job(
      'email', a.id, core.priority(a.backlog + a.place, a.class)) order by a.n, a.index))
    from accepted a
    where a.mode = 'live'
  ),
  result as (
    select array_agg(row(
      o.n, o.index, o.refusal,
      case o.refusal
        when 'domain_not_verified' then
          format('%s is not verified for this organisation; add the domain, or send from a verified one.', o.from_domain)
        when 'plan_allowance_exceeded' then
          format('This email needs %s of the plan''s %s emails, and %s are left until %s; nothing was queued.',
            cardinality(o.recipients), o.emails_included, greatest(0, o.email_allowance - coalesce(o.taken, 0)),
            core.iso(o.period_end))
        when 'rate_limited' then case
          when o.is_free then core.test_limit_words(o.test_limit)
          else format('Refusals name at most %s addresses an hour that bounced for other senders; retry after %s.',
            c_named_hourly, core.iso(v_hour + interval '1 hour')) end
      end,
      case o.refusal when 'rate_limited' then
        ceil(extract(epoch from case when o.is_free then date_trunc('day', v_now, 'UTC') + interval '24 hours' else v_hour + interval '1 hour' end - v_now)) end,
      case o.refusal
        when 'validation_error' then (o.sized).fields
        when 'recipient_suppressed' then jsonb_build_object('to', o.named)
      end,
      o.error, format('{"id":"%s","status":"queued"}', core.encode_id('em', o.id))
    )::core.outcome) as outcomes
    from outcome o
  )
  select a.*
  from result r
  cross join enqueued
  cross join lateral core.respond_to_calls(array(select c::core.checked_call from call c), r.outcomes, catalogue, v_now) a;
end
$$;

comment on function core.accept_emails_round is
  'Judge, record and enqueue the emails of the calls whose turn it is. The organisations must be locked. sized and templates: of core.size_emails; null when no item has a template.';
