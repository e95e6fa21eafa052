create function core.refused_calls(run uuid)
returns integer[]
language sql stable
as $$
  select split_part(s.value, ' ', 2)::integer[]
  from current_setting('postgram.refused_calls', true) as s (value)
  where split_part(s.value, ' ', 1) = run::text
$$;

comment on function core.refused_calls is
  'Returns the numbers of the calls of a run that api.admit_calls refused on this connection; null if it failed.';
