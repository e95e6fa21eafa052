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
  'Returns the consent of a number to an organisation''s marketing, for the audit; null if nothing is recorded.';
