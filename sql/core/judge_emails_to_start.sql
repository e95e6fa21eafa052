create function core.judge_emails_to_start(ids uuid[], first_id uuid, last_id uuid, large_bytes integer)
returns core.email_verdict[]
language plpgsql stable
set enable_seqscan = off
as $$
begin
  return array(
    -- Materialized, or the verdict, with its look-ups, would be computed at each of its uses below.
    with judged as materialized (
      select m.id, m.organisation_id, m.class, m.attempt_started_at as ambiguous_since,
        coalesce(d.name, split_part(m.from_address, '@', 2)) as domain,
        coalesce(d.mail_from_label, 'mail') || '.' || coalesce(d.name, split_part(m.from_address, '@', 2)) as mail_from_domain,
        d.id as domain_id,
        case
          when o.state = 'paused' then 'hold'
          when o.state = 'suspended' then 'org_suspended'
          when m.class = 'marketing' and m.attempt_started_at is null and (select core.are_lists_behind()) then 'wait'
          -- An email that may have left already is looked up at the provider first, even if its domain is gone.
          when m.attempt_started_at is null
            and exists (
              select from core.suppressed(m.organisation_id, b.recipients, m.class) s
              where s.email <> all (coalesce(b.settled_recipients, '{}')))
            then 'recipient_suppressed'
          when m.attempt_started_at is null and d.name is null then 'domain_not_verified'
          else 'start'
        end as verdict,
        core.large_bytes(
          (coalesce(octet_length(b.html), 0) + coalesce(octet_length(b.text), 0))::bigint
          -- The worker has at most 10 copies of marketing in hand at a time.
          * case m.class when 'marketing' then least(10, cardinality(b.recipients)) else 1 end) as bytes
      from app.messages m
      -- The limit keeps the plan from reading all bodies between the bounds.
      cross join lateral (
        select b.* from app.bodies b
        where b.message_id = m.id and b.message_id between first_id and last_id
        limit 1
      ) b
      join app.organisations o on o.id = m.organisation_id
      left join lateral core.sending_domain(m.organisation_id, split_part(m.from_address, '@', 2)) d on true
      where m.id = any (ids) and m.id between first_id and last_id and m.status = 'queued' and m.channel = 'email'
    )
    select row(
      j.id, j.organisation_id, j.class,
      -- Many large bodies at a time would fill the worker's memory. Those that do not fit wait for a job of
      -- their own, so that small emails start meanwhile.
      case
        when j.verdict = 'start' and j.bytes > 0
          and sum(j.bytes) over (partition by j.verdict order by j.id) > judge_emails_to_start.large_bytes
          then 'defer'
        else j.verdict
      end,
      j.ambiguous_since, j.domain, j.mail_from_domain, j.domain_id, j.bytes
    )::core.email_verdict
    from judged j);
end
$$;

comment on function core.judge_emails_to_start is
  'Decide for each of these emails, whose ids lie between first_id and last_id and which must be locked, whether it is attempted now; leaves out those that are not queued.';
