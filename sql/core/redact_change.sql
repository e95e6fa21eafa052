create function core.redact_change(change jsonb)
returns jsonb
language sql immutable
as $$
  select change || coalesce((
    select jsonb_object_agg(k.key, '(erased)')
    from unnest('{note,source}'::text[]) k (key)
    where change ->> k.key <> ''), '{}')
$$;

comment on function core.redact_change is
  'Returns the values before or after of an audit row about an erased person, without what an operator wrote.';
