create function core.consent(organisation_id uuid, phone text)
returns jsonb
language sql stable
as $$
  select jsonb_build_object('source', c.source, 'consented_at', core.iso(c.consented_at),
    'opted_out_at', core.iso(c.opted_out_at), 'opted_out_by', c.opted_out_by)
  from app.consents c
  where c.organisation_id = consent.organisation_id and c.phone = consent.phone
$$;

comment on function core.consent is
  'What is known of a number''s consent to an organisation''s marketing, for the audit; null when nothing is.';
