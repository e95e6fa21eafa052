create function core.priority(backlog bigint, class app.class)
returns integer
language sql immutable
as $$
  select least(32767, backlog / 100 + case class when 'marketing' then 1 else 0 end)::integer
$$;

comment on function core.priority is
  'Returns the priority of a message''s job, lowest first: the backlog of its organisation in hundreds, plus 1 for marketing.';
