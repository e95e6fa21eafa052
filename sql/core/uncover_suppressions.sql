create function core.uncover_suppressions(lifted app.suppressions[])
returns integer
language sql volatile
as $$
  with uncovered as (
    insert into app.suppressions (id, organisation_id, email, reason, beneath, created_at)
    select core.new_id(core.now()), l.organisation_id, l.email, l.beneath[1], l.beneath[2:], core.now()
    from unnest(lifted) l
    where cardinality(l.beneath) > 0
    returning 1
  )
  select count(*)::integer from uncovered
$$;

comment on function core.uncover_suppressions is
  'List addresses anew, whose entries were removed, for what else stands against them. Answers how many.';
