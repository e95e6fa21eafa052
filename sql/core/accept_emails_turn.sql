-- The whole of design section 5 in one statement: who may, what is refused and why, what is written.
-- Refusals are rows, because one exception would undo the other items of the batch.
create function core.accept_emails_turn(calls jsonb, items jsonb, catalogue jsonb, turn integer)
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
begin
  return query
  with call as materialized (
    select * from core.judge_calls(calls, accept_emails_turn.turn, v_now)
  ),
  item as materialized (
    select i.*, c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.batch, c.is_paused, c.email_allowance, c.backlog,
      core.new_id(v_now) as id,
      case when i.template_id is not null
        then core.render_email(c.organisation_id, i.template_id, i.subject, i.variables) end as rendered,
      case when c.mode = 'live' then (
        select jsonb_agg(s.email || ': ' || s.reason order by s.email)
        from core.suppressed(c.organisation_id, i.recipients, i.class) s
      ) end as suppressed
    from jsonb_to_recordset(items) as i (
      call integer, index integer, error jsonb, class app.class, sender text, from_address text,
      from_domain text, "to" text[], cc text[], bcc text[], to_addresses text, recipients text[],
      reply_to text, subject text, html text, text text, template_id text, variables jsonb,
      headers jsonb, tags text[], is_rehearsal boolean
    )
    join call c on c.n = i.call and c.answer is null
  ),
  judged as (
    select i.*,
      case
        when i.error is not null then i.error ->> 'code'
        when (i.rendered).fields is not null then 'validation_error'
        when i.is_paused then 'org_paused'
        when i.mode = 'live' and not exists (select from core.sending_domains(i.organisation_id, i.from_domain))
          then 'domain_not_verified'
        when i.suppressed is not null then 'recipient_suppressed'
      end as code
    from item i
  ),
  counted as (
    select j.*,
      -- Of its own partition, so that what is refused or free does not use up what the others need.
      core.fits(cardinality(j.recipients), j.email_allowance) over (
        partition by j.organisation_id, j.is_counted order by j.n, j.index
      ) as fits
    from (
      select j.*, j.code is null and j.mode = 'live' and j.is_rehearsal is not true as is_counted
      from judged j
    ) j
  ),
  outcome as materialized (
    select c.*,
      coalesce(c.code, case when c.is_counted and not c.fits then 'plan_allowance_exceeded' end) as refusal
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
      recipients, created_at, sent_at, is_rehearsal
    )
    select
      case a.mode when 'live' then 'queued' else 'sent' end::app.message_status, a.id,
      a.organisation_id, 'email', a.mode, a.class, a.from_address, a.to_addresses,
      coalesce((a.rendered).subject, a.subject), a.tags, cardinality(a.recipients), v_now, case a.mode when 'test' then v_now end,
      a.is_rehearsal is true
    from accepted a
  ),
  counted_in_reports as (
    insert into app.changes (message_id, change, at)
    select a.id, 'queued', v_now
    from accepted a
    where a.mode = 'live' and a.is_rehearsal is not true
  ),
  new_bodies as (
    insert into app.bodies (message_id, sender, "to", cc, bcc, recipients, reply_to, html, text, headers)
    select a.id, a.sender, a."to", a.cc, a.bcc, a.recipients, a.reply_to,
      coalesce((a.rendered).html, a.html), coalesce((a.rendered).text, a.text), a.headers
    from accepted a
  ),
  used as (
    update app.allowances a
    set emails_used = a.emails_used + u.recipients, messages_accepted = a.messages_accepted + u.messages
    from (
      select organisation_id, coalesce(sum(cardinality(recipients)) filter (where is_counted), 0) as recipients,
        count(*) as messages
      from accepted
      where mode = 'live'
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
      o.n, o.index, o.refusal, null::text,
      case o.refusal
        when 'validation_error' then (o.rendered).fields
        when 'recipient_suppressed' then jsonb_build_object('to', o.suppressed)
      end,
      o.error, format('{"id":"%s","status":"queued"}', core.encode_id('em', o.id))
    )::core.outcome) as outcomes
    from outcome o
  )
  select a.*
  from result r
  cross join enqueued
  cross join lateral core.answer_calls(array(select c::core.judged_call from call c), r.outcomes, catalogue, v_now) a;
end
$$;

comment on function core.accept_emails_turn is
  'Judge, record and enqueue the emails of the calls whose turn it is. The organisations must be locked.';
