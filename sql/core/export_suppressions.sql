create function core.export_suppressions(person text)
returns setof core.personal_record
language sql stable
as $$
  select 'suppression', s.organisation_id, core.encode_id('sup', s.id), s.created_at,
    core.suppression_object(s)::jsonb || jsonb_build_object('other_reasons', s.other_reasons)
  from app.suppressions s
  where s.email = person
  union all
  select 'hard bounce', null, core.encode_id('em', b.message_id), b.created_at, to_jsonb(b) - 'message_id'
  from app.hard_bounces b
  where b.email = person
  union all
  select 'consent', c.organisation_id, null, coalesce(c.opted_out_at, c.consented_at), to_jsonb(c) - 'organisation_id'
  from app.consents c
  where c.phone = person
  union all
  select 'opt-out registry', null, null, b.created_at, to_jsonb(b)
  from app.blocked_numbers b
  where b.phone = person
  union all
  select 'suppression hash', a.organisation_id, encode(a.sha256, 'hex'), a.erased_at,
    jsonb_build_object('reason', a.reason)
  from core.suppressions_by_hash(person) a
$$;

comment on function core.export_suppressions is
  'Returns the suppressions and consents of a person (address in lower case, or number); of an erased person those stored by hash.';
