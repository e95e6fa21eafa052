-- The body is parsed when the function is created, as in core.message_id: readers of ops.help have no rights
-- on schema core.
create function core.wrapped_usage(name text, arguments text)
returns text
language sql immutable
return case
  when arguments is null then name
  when length(name) + length(arguments) <= 25 then format('%s(%s)', name, arguments)
  else format(E'%s(\n  %s)', name, replace(core.wrapped(arguments, 24), E'\n', E'\n  '))
end;

comment on function core.wrapped_usage is
  'Returns how ops.help shows a function or view: the name and, for a function, its arguments, in lines of at most 27 characters. arguments is null for a view.';
