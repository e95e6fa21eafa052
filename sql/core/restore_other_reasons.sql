create function core.restore_other_reasons(lifted app.suppressions[])
returns void
language sql volatile
as $$
  insert into app.suppressions (id, organisation_id, email, reason, other_reasons, created_at)
  select core.new_id(core.now()), l.organisation_id, l.email, l.other_reasons[1], l.other_reasons[2:], core.now()
  from unnest(lifted) l
  where cardinality(l.other_reasons) > 0
$$;

comment on function core.restore_other_reasons is
  'Insert suppressions again for addresses whose removed entries had other reasons.';
