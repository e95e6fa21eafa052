create function core.record_consents(organisation_id uuid, phones text[], sources text[])
returns void
language plpgsql volatile
as $$
begin
  delete from app.suppression_hashes h
  using app.person_salt s, unnest(phones) p (phone)
  where h.sha256 = core.person_sha256(p.phone, s.salt)
    and h.organisation_id = record_consents.organisation_id and h.reason = 'opted_out'
    -- Runs once: if no person was ever erased, nothing is hashed.
    and (select exists (select from app.suppression_hashes));

  insert into app.consents (organisation_id, phone, source, consented_at)
  select record_consents.organisation_id, c.phone, c.source, core.now()
  from unnest(phones, sources) c (phone, source)
  on conflict on constraint consents_pkey do update
  set source = excluded.source, consented_at = excluded.consented_at, opted_out_at = null, opted_out_by = null;
end
$$;

comment on function core.record_consents is
  'Record that the owners of these numbers, each once, agreed to marketing SMS of an organisation, with the source of each. Earlier opt-outs end. The caller has checked the numbers and writes the audit.';
