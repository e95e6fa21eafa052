create function core.everyone()
returns uuid
language sql immutable
as $$
  select '00000000-0000-0000-0000-000000000000'::uuid
$$;

comment on function core.everyone is
  'Returns the UUID that stands for all organisations in app.suppression_hashes.';
