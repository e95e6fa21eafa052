create function api.start_emails(ids uuid[], large_bytes integer default null)
returns setof api.email_to_send
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := core.now();
  -- By bounds the partitions that hold none of the ids are passed over, which an array alone does not do.
  v_sorted constant uuid[] := array(select i from unnest(ids) i order by i);
  v_first_id constant uuid := v_sorted[1];
  v_last_id constant uuid := v_sorted[cardinality(v_sorted)];
begin
  -- First of all, as what follows reads more than these rows: whoever had to wait for another worker must
  -- see in all of it what that one did.
  perform from app.messages m
  where m.id = any (ids) and m.id between v_first_id and v_last_id
  order by m.id
  for no key update;

  return query
  with judged as materialized (
    select m.id, m.organisation_id, m.class, m.attempt_started_at as ambiguous_since,
      coalesce(d.name, split_part(m.from_address, '@', 2)) as domain,
      coalesce(d.mail_from_label, 'mail') || '.' || coalesce(d.name, split_part(m.from_address, '@', 2)) as mail_from_domain,
      d.id as domain_id,
      case
        when o.state = 'paused' then 'hold'
        when o.state = 'suspended' then 'org_suspended'
        -- One that may have left already is asked after first, also when its domain is gone.
        when m.attempt_started_at is null
          and exists (
            select from core.suppressed(m.organisation_id, b.recipients, m.class) s
            where s.email <> all (coalesce(b.settled_recipients, '{}')))
          then 'recipient_suppressed'
        when m.attempt_started_at is null and d.name is null then 'domain_not_verified'
        else 'start'
      end as judgement,
      core.large_bytes(
        (coalesce(octet_length(b.html), 0) + coalesce(octet_length(b.text), 0))::bigint
        -- So many copies are in hand at a time.
        * case m.class when 'marketing' then least(10, cardinality(b.recipients)) else 1 end) as large_bytes
    from app.messages m
    -- Limited, so that no plan reads all that lies between the bounds.
    cross join lateral (
      select b.* from app.bodies b
      where b.message_id = m.id and b.message_id between v_first_id and v_last_id
      limit 1
    ) b
    join app.organisations o on o.id = m.organisation_id
    left join lateral core.sending_domain(m.organisation_id, split_part(m.from_address, '@', 2)) d on true
    where m.id = any (ids) and m.status = 'queued' and m.channel = 'email'
  ),
  -- Many large bodies at a time would fill the worker's memory. Those that do not fit have another job a
  -- little later: they take no place from small ones meanwhile.
  mine as materialized (
    select j.*,
      case
        when j.judgement = 'start' and j.large_bytes > 0
          and sum(j.large_bytes) over (partition by j.judgement order by j.id) > start_emails.large_bytes
          then 'defer'
        else j.judgement
      end as verdict
    from judged j
  ),
  put_aside as (
    select core.defer_messages(array_agg(i.id) filter (where i.verdict = 'hold')),
      core.end_messages(array_agg((i.id, 'rejected', r.code, r.reason)::core.ending) filter (where r.code is not null))
    from mine i
    left join (values
      ('org_suspended', 'The organisation is suspended.'),
      ('recipient_suppressed', 'A recipient was suppressed after the message was accepted.'),
      ('domain_not_verified', 'The domain was removed, or its records were gone, after the message was accepted.')
    ) r (code, reason) on r.code = i.verdict
  ),
  deferred as (
    select core.send_later('email', i.id, i.organisation_id, i.class, (0.5 + random()) * interval '1 second')
    from mine i
    where i.verdict = 'defer'
  ),
  started as (
    update app.messages m
    set attempts = m.attempts + 1, attempt_started_at = v_now
    from mine i
    where m.id = any (ids) and m.id = i.id and i.verdict = 'start'
    returning m.*, i.ambiguous_since, i.domain, i.mail_from_domain, i.domain_id, i.large_bytes
  )
  select s.id, s.organisation_id, s.attempts::integer, v_now, s.ambiguous_since is not null, s.ambiguous_since,
    s.is_sandbox, s.domain, s.mail_from_domain, k.selector, k.private_key,
    s.from_address, b.sender, b."to", b.cc, b.bcc, b.recipients, b.reply_to, s.subject, b.html, b.text,
    b.headers, s.tags, s.class, b.settled_recipients, s.large_bytes
  from started s
  cross join lateral (
    select b.* from app.bodies b
    where b.message_id = s.id and b.message_id between v_first_id and v_last_id
    limit 1
  ) b
  left join app.dkim_keys k on k.domain_id = s.domain_id and k.state = 'active' and k.private_key is not null
  -- Asked for here, as a join would not look at it when nothing was started.
  where (select count(*) from put_aside) = 1 and (select count(*) from deferred) >= 0;
end
$$;

comment on function api.start_emails is
  'Begin the hand-over of those of these emails that are still queued; committed before the provider is called (promise 4). One of a paused organisation is held, of a suspended one, to a recipient suppressed since, or from a domain that is gone, rejected. is_ambiguous: an earlier hand-over has no known outcome, ask the provider first. Emails whose large_bytes go beyond the argument together are not begun: they have a new job, due in a second.';
