create function ops.create_webhook_endpoint(organisation text, url text, event_types text[], out id text, out secret text)
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_organisation_id uuid := core.organisation_id(organisation);
  v_problem text := core.webhook_url_problem(create_webhook_endpoint.url);
  v_secret record;
  v_id uuid := core.new_id(core.now());
begin
  if v_problem is not null then
    raise exception 'the URL %', v_problem;
  end if;
  v_secret := core.make_secret();
  insert into app.webhook_endpoints (id, organisation_id, url, event_types, secret, created_at)
  values (v_id, v_organisation_id, create_webhook_endpoint.url,
    create_webhook_endpoint.event_types::app.webhook_event_type[], v_secret.sealed, core.now());
  id := core.encode_id('we', v_id);
  secret := v_secret.secret;
end
$$;

comment on function ops.create_webhook_endpoint is
  'Have an organisation''s events of these types delivered to an https URL. Answers the endpoint''s id and its signing secret, which is shown this once.';
