create type core.personal_record as (
  kind text,
  organisation_id uuid,
  id text,
  at timestamptz,
  data jsonb
);
comment on type core.personal_record is 'One record that names a person, as ops.export_person shows it.';
