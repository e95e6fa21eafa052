create function core.holds_name(d app.domains)
returns boolean
language sql stable
as $$
  select d.organisation_id is not null
    and (d.status = 'verified' or d.status = 'pending' and d.created_at > core.now() - interval '72 hours')
$$;

comment on function core.holds_name is
  'Returns whether other organisations cannot add a domain: it is verified, or was claimed less than 72 hours ago. A failed domain does not hold its name, even if it was verified before: the name may have been sold since.';
