create function core.template_bytes(literal_bytes integer, names text[], variables jsonb, escape_html boolean)
returns bigint
language sql immutable
as $$
  -- Escapes a value that occurs several times only once.
  select literal_bytes + coalesce(sum(n.occurrences * octet_length(core.template_value(n.name, variables, escape_html))), 0)::bigint
  from (select u.name, count(*) as occurrences from unnest(names) as u (name) group by u.name) n
$$;

comment on function core.template_bytes is
  'Returns the size of a body in bytes after rendering; null for a body that the template does not have.';
