-- Locks, in this order: messages by id, and to reject some counters by organisation.
create function api.start_emails(ids uuid[], large_bytes integer default null, jobs bigint[] default null)
returns setof api.email_to_send
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
-- To plan for all partitions takes longer than to run: one generic plan, in which the bounds exclude partitions.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_now timestamptz := core.now();
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
  v_verdicts core.email_verdict[];
  v_started uuid[];
begin
  -- Lock first: the statements below read other tables too, and must see all that another worker did.
  perform from app.messages m
  where m.id = any (ids) and m.id between v_first_id and v_last_id
  order by m.id
  for no key update;

  v_verdicts := core.judge_emails_to_start(ids, v_first_id, v_last_id, start_emails.large_bytes);
  v_started := array(select v.message_id from unnest(v_verdicts) v where v.verdict = 'start');
  if cardinality(v_started) < cardinality(v_verdicts) then
    perform core.put_emails_aside(v_verdicts);
    perform core.leave_jobs(array_agg(g.id), array_agg(distinct g.job))
    from unnest(ids, start_emails.jobs) g (id, job)
    join unnest(v_verdicts) v on v.message_id = g.id
    where v.verdict in ('hold', 'wait', 'defer');
  end if;

  return query
  with started as (
    update app.messages m
    set attempts = m.attempts + 1, attempt_started_at = v_now
    where m.id = any (v_started) and m.id between v_first_id and v_last_id
    returning m.id, m.organisation_id, m.attempts, m.is_sandbox, m.from_address, m.subject, m.tags, m.class
  )
  select m.id, m.organisation_id, m.attempts::integer, v_now, v.ambiguous_since is not null, v.ambiguous_since,
    m.is_sandbox, v.domain, v.mail_from_domain, k.selector, k.private_key,
    m.from_address, b.sender, b."to", b.cc, b.bcc, b.recipients, b.reply_to, m.subject, b.html, b.text,
    b.headers, m.tags, m.class, b.settled_recipients, v.large_bytes
  from started m
  join unnest(v_verdicts) v on v.message_id = m.id
  -- The limits make the plan look up each body and key by its id.
  cross join lateral (
    select b.* from app.bodies b
    where b.message_id = m.id and b.message_id between v_first_id and v_last_id
    limit 1
  ) b
  left join lateral (
    select k.selector, k.private_key from app.dkim_keys k
    where k.domain_id = v.domain_id and k.state = 'active' and k.private_key is not null
    limit 1
  ) k on true;
end
$$;

comment on function api.start_emails is
  'Start an attempt of those of these emails that are still queued; the caller commits before it calls the provider. Holds emails of a paused organisation, defers marketing while the lists of another cell are behind. Rejects emails of a suspended organisation, to a recipient suppressed since, or from a domain that is gone. is_ambiguous: an earlier attempt has no known outcome; ask the provider first. Emails whose large_bytes together exceed the argument are not started: each gets a new job, due in about a second. jobs: the jobs of the ids, which held and deferred emails leave.';
