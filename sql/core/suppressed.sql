create function core.suppressed(organisation_id uuid, recipients text[], class app.class)
returns table (email text, reason text, is_foreign boolean)
language sql stable
as $$
  select r.email, coalesce(s.reason::text, case when b.email is not null then 'hard_bounce' end, e.reason::text),
    s.email is null and (b.email is not null or e.is_foreign)
  from unnest(recipients) as r (email)
  left join app.suppressions s
    on s.organisation_id = suppressed.organisation_id and s.email = r.email
    and (s.reason <> 'unsubscribe' or class = 'marketing')
  left join lateral core.hard_bounces_of(r.email) b on true
  left join lateral (
    select min(a.reason) as reason, bool_and(a.organisation_id is null) as is_foreign
    from core.suppressions_by_hash(r.email) a
    where (a.organisation_id = suppressed.organisation_id or a.organisation_id is null)
      and a.reason in ('hard_bounce', 'complaint', 'unsubscribe', 'manual')
      and (a.reason <> 'unsubscribe' or class = 'marketing')
  ) e on true
  where s.email is not null or b.email is not null or e.reason is not null
$$;

comment on function core.suppressed is
  'Returns those of these addresses, in lower case, that must not be sent to, and why. is_foreign: suppressed only because it bounced for another organisation.';
