create function api.finish_check(
  id uuid, is_active boolean, records jsonb, identity jsonb default null,
  mode text default null, fingerprint text default null, key text default null, actor text default null
)
returns api.reply
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains;
  v_body text;
begin
  perform set_config('postgram.user', finish_check.actor, true);
  -- Lock order: the organisation before its objects.
  perform core.lock_organisations(array(select d.organisation_id from app.domains d where d.id = finish_check.id));
  perform core.store_identity(finish_check.id, finish_check.identity);
  v_domain := core.evaluate_domain(finish_check.id, finish_check.is_active, finish_check.records);
  if v_domain.id is null then
    perform core.refuse('not_found');
  end if;
  -- A check by the clock leaves the domain pending instead.
  if finish_check.fingerprint is not null and v_domain.status <> 'verified'
    and core.is_claimed_elsewhere(v_domain.name, core.now()) then
    perform core.refuse('already_exists');
  end if;
  v_body := core.domain_object(v_domain)::text;
  perform core.release_key(v_domain.organisation_id, finish_check.mode::app.mode, finish_check.key);
  perform core.store_response(v_domain.organisation_id, finish_check.mode::app.mode, finish_check.key, finish_check.fingerprint, 200, v_body);
  return (200, v_body, false)::api.reply;
end
$$;

comment on function api.finish_check is
  'Record the result of a domain check: is_active from the provider, records from DNS, and identity if the provider had to create it again. actor: the user of the dashboard who asked for it, whom the audit names; null for others. Returns the domain object. Refuses not_found if the domain was removed in the meantime, already_exists if an organisation of another cell claimed the name earlier.';
