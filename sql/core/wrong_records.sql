create function core.wrong_records(records jsonb)
returns jsonb
language sql immutable
as $$
  select coalesce(jsonb_agg(r.type || ' ' || r.name || ': ' || r.status order by r.name, r.type), '[]')
  from jsonb_to_recordset(records) as r (type text, name text, required boolean, status text)
  where r.required and r.status <> 'verified'
$$;

comment on function core.wrong_records is
  'Returns the required records of a domain that are not verified, each as type, name and status.';
