create function core.audit_sha256(a app.audit)
returns bytea
language sql stable
as $$
  select sha256(convert_to(jsonb_build_array(a.id, extract(epoch from a.at), a.actor, a.login, a.application_name,
    a.action, a.organisation_id, a.target, a.before, a.after, a.salt)::text, 'UTF8'))
$$;

comment on function core.audit_sha256 is 'Returns the SHA-256 of a row of the audit.';
