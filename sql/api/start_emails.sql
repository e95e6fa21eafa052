-- Locks, in this order: messages by id, and to reject some counters by organisation.
create function api.start_emails(ids uuid[], large_bytes integer default null)
returns setof api.email_to_send
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  -- An array alone does not exclude partitions; these bounds exclude those that hold none of the ids.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
  v_verdicts core.email_verdict[];
begin
  -- Lock first: the statements below read other tables too, and must see all that another worker did.
  perform from app.messages m
  where m.id = any (ids) and m.id between v_first_id and v_last_id
  order by m.id
  for no key update;

  v_verdicts := core.judge_emails_to_start(ids, v_first_id, v_last_id, start_emails.large_bytes);
  if exists (select from unnest(v_verdicts) v where v.verdict <> 'start') then
    perform core.put_emails_aside(v_verdicts);
  end if;

  return query
  with started as (
    update app.messages m
    set attempts = m.attempts + 1, attempt_started_at = v_now
    from unnest(v_verdicts) v
    where m.id = any (ids) and m.id between v_first_id and v_last_id and m.id = v.message_id and v.verdict = 'start'
    returning m.*, v.ambiguous_since, v.domain, v.mail_from_domain, v.domain_id, v.large_bytes
  )
  select s.id, s.organisation_id, s.attempts::integer, v_now, s.ambiguous_since is not null, s.ambiguous_since,
    s.is_sandbox, s.domain, s.mail_from_domain, k.selector, k.private_key,
    s.from_address, b.sender, b."to", b.cc, b.bcc, b.recipients, b.reply_to, s.subject, b.html, b.text,
    b.headers, s.tags, s.class, b.settled_recipients, s.large_bytes
  from started s
  -- The limit keeps the plan from reading all bodies between the bounds.
  cross join lateral (
    select b.* from app.bodies b
    where b.message_id = s.id and b.message_id between v_first_id and v_last_id
    limit 1
  ) b
  left join app.dkim_keys k on k.domain_id = s.domain_id and k.state = 'active' and k.private_key is not null;
end
$$;

comment on function api.start_emails is
  'Start an attempt of those of these emails that are still queued; the caller commits before it calls the provider. Holds emails of a paused organisation. Rejects emails of a suspended organisation, to a recipient suppressed since, or from a domain that is gone. is_ambiguous: an earlier attempt has no known outcome; ask the provider first. Emails whose large_bytes together exceed the argument are not started: each gets a new job, due in about a second.';
