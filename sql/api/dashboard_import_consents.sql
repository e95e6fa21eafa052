create function api.dashboard_import_consents(
  session text, organisation text, phones text[], sources text[], ends_opt_outs boolean
)
returns text[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_import_consents.session, dashboard_import_consents.organisation, 'member');
  v_opted_out text[];
  v_before jsonb;
  v_recorded integer;
begin
  -- Replies lock consents in the order of their arrival (core.record_inbound).
  perform pg_advisory_xact_lock(hashtextextended('postgram inbound', 0));

  v_opted_out := array(
    select i.phone
    from unnest(phones) i (phone)
    where exists (
        select from app.consents c
        where c.organisation_id = v_organisation and c.phone = i.phone and c.opted_out_at is not null)
      or exists (
        select from core.suppressions_by_hash(i.phone) h
        where h.organisation_id = v_organisation and h.reason = 'opted_out'));

  if ends_opt_outs then
    v_before := (
      select jsonb_object_agg(o.phone, core.consent(v_organisation, o.phone)) from unnest(v_opted_out) o (phone));
    perform core.record_consents(v_organisation, phones, sources);
    -- An opt-out can be needed as evidence.
    perform core.audit('record_consent', v_organisation, o.phone, nullif(v_before -> o.phone, 'null'),
      core.consent(v_organisation, o.phone))
    from unnest(v_opted_out) o (phone);
  else
    perform core.record_consents(v_organisation, array_agg(i.phone), array_agg(i.source))
    from unnest(phones, sources) i (phone, source)
    where not exists (select from unnest(v_opted_out) o (phone) where o.phone = i.phone)
    having count(*) > 0;
  end if;

  v_recorded := cardinality(phones) - case when ends_opt_outs then 0 else cardinality(v_opted_out) end;
  -- One row for all: with a row for each number, lists that are imported again would fill the audit.
  if v_recorded > 0 then
    perform core.audit('import_consents', v_organisation, core.encode_id('org', v_organisation),
      null, jsonb_build_object(
        'consents', v_recorded, 'opt_outs_ended', case when ends_opt_outs then cardinality(v_opted_out) else 0 end));
  end if;
  return case when ends_opt_outs then '{}' else v_opted_out end;
end
$$;

comment on function api.dashboard_import_consents is
  'Record consents to marketing SMS as ops.record_consent does. phones: numbers in E.164, each once; sources: 1 to 1000 characters for each. Without ends_opt_outs, numbers that opted out are skipped; returns those. Refuses as core.member_of does.';
