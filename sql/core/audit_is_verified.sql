create function core.audit_is_verified()
returns boolean
language sql stable
as $$
  select coalesce((
    select coalesce(c.is_complete, true) and core.audit_is_complete(c.verified_seals) from app.audit_chain c), false)
$$;

comment on function core.audit_is_verified is
  'Returns whether the last run of api.verify_audit found the audit complete, and what was sealed since is unchanged.';
