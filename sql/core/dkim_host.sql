create function core.dkim_host(selector text, domain_id uuid, dkim_zone text)
returns text
language sql immutable
as $$
  select selector || '.' || substr(core.encode_id('dom', domain_id), 5) || '.' || dkim_zone
$$;

comment on function core.dkim_host is
  'Returns the name in the DKIM zone that a domain''s CNAME record for a selector points to. It contains the domain''s ID without prefix, so that names of different domains never collide.';
