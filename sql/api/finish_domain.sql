create function api.finish_domain(
  id uuid, organisation_id uuid, mode text, fingerprint text, identity jsonb, records jsonb, key text default null,
  actor text default null
)
returns api.reply
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain app.domains;
  v_body text;
begin
  perform core.lock_organisations(array[finish_domain.organisation_id]);
  update app.domains d
  set change = null, change_since = null, records = finish_domain.records,
    next_check_at = core.now() + interval '5 minutes'
  where d.id = finish_domain.id and d.change = 'adding';
  if not found then
    -- The call took so long that the reservation was removed.
    perform core.refuse('email_provider_unavailable');
  end if;
  perform core.store_identity(finish_domain.id, finish_domain.identity);
  select d.* into v_domain from app.domains d where d.id = finish_domain.id;
  if finish_domain.actor is not null then
    perform set_config('postgram.user', finish_domain.actor, true);
    perform core.audit('add_domain', v_domain.organisation_id, v_domain.name, null, jsonb_build_object('status', v_domain.status));
  end if;
  v_body := core.domain_object(v_domain)::text;
  perform core.release_key(finish_domain.organisation_id, finish_domain.mode::app.mode, finish_domain.key);
  perform core.store_response(finish_domain.organisation_id, finish_domain.mode::app.mode, finish_domain.key, finish_domain.fingerprint, 201, v_body);
  return (201, v_body, false)::api.reply;
end
$$;

comment on function api.finish_domain is
  'Add a reserved domain whose identity the provider has created. actor: the user of the dashboard, whom the audit names; null for a call of the API. Refuses email_provider_unavailable if the reservation was removed in the meantime.';
