create function core.domain_object(d app.domains)
returns json
language sql stable
as $$
  select json_build_object(
    'id', core.encode_id('dom', d.id),
    'name', d.name,
    'status', d.status,
    'mailFromDomain', d.mail_from_label || '.' || d.name,
    'records', (
      select coalesce(json_agg(json_build_object(
        'purpose', r.purpose, 'type', r.type, 'name', r.name, 'value', r.value,
        'required', r.required, 'status', r.status, 'found', r.found) order by r.place), '[]')
      from rows from (jsonb_to_recordset(d.records) as (
        purpose text, type text, name text, value text, required boolean, status text, found jsonb
      )) with ordinality as r (purpose, type, name, value, required, status, found, place)
    ),
    'verifiedAt', core.iso(d.verified_at),
    'lastCheckedAt', core.iso(d.last_checked_at),
    'createdAt', core.iso(d.created_at)
  )
$$;

comment on function core.domain_object is
  'Returns the domain object of the API, with its records in the order of publication.';
