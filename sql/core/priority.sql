create function core.priority(backlog bigint, class app.class)
returns integer
language sql immutable
as $$
  select least(32767, backlog / 100 + case class when 'marketing' then 1 else 0 end)::integer
$$;

comment on function core.priority is
  'A message''s job priority, lowest first: its organisation''s own backlog in hundreds, marketing one step behind.';
