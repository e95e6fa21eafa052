create function core.holds_name(d app.domains)
returns boolean
language sql stable
as $$
  select d.organisation_id is not null
    and (d.status = 'verified' or d.status = 'pending' and d.created_at > core.now() - interval '72 hours')
$$;

comment on function core.holds_name is
  'Whether a domain is held against other organisations: verified, or claimed less than 72 hours ago. A failed one holds nothing, also when it was verified before: its name may have been sold since.';
