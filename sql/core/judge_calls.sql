create function core.judge_calls(calls jsonb, turn integer, at timestamptz)
returns table (
  n integer, organisation_id uuid, mode app.mode, key text, fingerprint text, batch boolean,
  answer text, stored_status smallint, stored_body text,
  is_paused boolean, email_allowance integer, backlog bigint
)
language sql stable
as $$
  select c.n, c.organisation_id, c.mode, c.key, c.fingerprint, c.batch,
    case
      when k.fingerprint = c.fingerprint then 'replay'
      when k.fingerprint is not null then 'idempotency_conflict'
      when o.state = 'suspended' then 'org_suspended'
      when c.batch and o.state = 'paused' and c.mode = 'live' then 'org_paused'
    end,
    k.status, k.body,
    -- Of a single send the template is judged before this, like all else in its body.
    o.state = 'paused' and c.mode = 'live',
    p.emails_included - a.emails_used,
    a.messages_accepted - d.messages
  from core.calls_in_turn(calls, judge_calls.turn) c
  join app.organisations o on o.id = c.organisation_id
  join app.plans p on p.id = o.plan_id
  join app.allowances a on a.organisation_id = o.id
  join app.departures d on d.organisation_id = o.id
  left join core.kept_answer(c.organisation_id, c.mode, c.key, at) k on true
$$;

comment on function core.judge_calls is
  'What is known of calls before their items are looked at: answer is null when they are to be judged, else replay or the code with which the call as a whole is refused.';
