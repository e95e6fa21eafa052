create function core.pause_for_complaints(ids uuid[])
returns void
language sql volatile
as $$
  with paused as (
    update app.organisations o
    set paused_at = core.now(),
      pause_reason = format('%s about %s sent within 24 hours', core.counted(r.complaints, 'complaint'), core.counted(r.sent, 'email'))
    from (select a.id, a.state from app.organisations a where a.id = any (ids) and a.paused_at is null) a
    cross join lateral core.complaint_rate(a.id) r
    where o.id = a.id and r.complaints >= 3 and r.sent <= r.complaints * 1000::bigint
    returning o.id, a.state as state_before, o.state, o.pause_reason, r.complaints, r.sent
  )
  select
    core.notify_owner(p.id, 'org_paused', jsonb_build_object('complaints', p.complaints, 'sent', p.sent)),
    core.audit('pause_for_complaints', p.id, core.encode_id('org', p.id),
      jsonb_build_object('state', p.state_before, 'reason', null),
      jsonb_build_object('state', p.state, 'reason', p.pause_reason))
  from paused p
$$;

comment on function core.pause_for_complaints is
  'Pause those of these organisations that have at least 3 complaints and a rate of at least 0.1 % within 24 hours, and notify their owners. Skips paused organisations, not suspended ones. The caller has locked them.';
