create function core.add_suppressions(organisation_id uuid, reason app.suppression_reason, emails text[], notes text[])
returns table (entry app.suppressions, is_new boolean)
language sql volatile
-- A nested loop, which a plan for few addresses would have, compares each address with all others.
set enable_nestloop = off
as $$
  with given as materialized (
    select distinct on (g.email) core.new_id(core.now()) as id, g.email, g.note
    from unnest(add_suppressions.emails, add_suppressions.notes) with ordinality as g (email, note, place)
    order by g.email, g.place
  ),
  stored as (
    insert into app.suppressions as s (id, organisation_id, email, reason, note, created_at)
    select g.id, add_suppressions.organisation_id, g.email, add_suppressions.reason, g.note, core.now()
    from given g
    order by g.email
    -- manual blocks all email, unsubscribe only marketing. Any other existing entry stays as it is, but is locked and
    -- returned, even one that a concurrent bounce inserts.
    on conflict on constraint suppressions_one_per_address do update
      set (reason, other_reasons, message_id, note) = (
        select c.reason, c.other_reasons, c.message_id, c.note
        from (values
          (true, excluded.reason, s.other_reasons || s.reason, null, excluded.note),
          (false, s.reason, s.other_reasons, s.message_id, s.note)
        ) c (is_replaced, reason, other_reasons, message_id, note)
        where c.is_replaced = (s.reason = 'unsubscribe' and excluded.reason = 'manual'))
    returning s.*
  )
  select row(s.*)::app.suppressions, g.id is not null
  from stored s
  left join given g on g.id = s.id
$$;

comment on function core.add_suppressions is
  'Suppress addresses (in lower case) for an organisation, each with the note at the same place. Returns the entry of each address, once, and whether it is new; an existing one changes only if manual replaces unsubscribe.';
