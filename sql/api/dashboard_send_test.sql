create function api.dashboard_send_test(session text, organisation text, template text, request text, email jsonb)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_organisation uuid := core.member_of(dashboard_send_test.session, dashboard_send_test.organisation, 'member');
  v_template app.templates := core.own_template(v_organisation, dashboard_send_test.template);
  v_calls jsonb := jsonb_build_array(jsonb_build_object('n', 1, 'organisation_id', v_organisation, 'mode', 'live',
    'key', 'request:' || dashboard_send_test.request, 'fingerprint', dashboard_send_test.request, 'batch', false));
  v_response core.call_response;
  v_id text;
begin
  perform core.begin_accept(v_calls, false, null);
  -- After the locks, so that this reads what their former holder left.
  select r.* into v_response
  from core.accept_emails_round(v_calls, jsonb_build_array(dashboard_send_test.email || '{"call": 1, "index": 0}'),
    '{}', 1, null, null) r;
  if v_response.code is not null then
    perform core.refuse(v_response.code, v_response.fields, v_response.message, v_response.retry_after);
  end if;
  v_id := v_response.body::json ->> 'id';
  if not v_response.is_replayed then
    perform core.audit('send_test_email', v_organisation, core.encode_id('tpl', v_template.id), null,
      jsonb_build_object('email', v_id));
  end if;
  return v_id;
end
$$;

comment on function api.dashboard_send_test is
  'Accept a live email that tests a template of the organisation, for a member, as api.accept_emails does; it counts against the allowance. email is an item of api.accept_emails with its bodies, request the request ID, by which a repeated call is accepted once. Returns the ID of the email. Refuses as core.member_of and api.accept_emails do, and with not_found.';
