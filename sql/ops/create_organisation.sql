create function ops.create_organisation(name text, owner_email text, plan text default 'starter')
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid := core.new_id(core.now());
  v_plan text := (core.find_plan(create_organisation.plan)).id;
begin
  perform core.check_name(create_organisation.name);
  perform core.check_email(create_organisation.owner_email);
  insert into app.organisations (id, name, owner_email, plan_id, created_at, activated_at)
  values (v_id, create_organisation.name, create_organisation.owner_email, v_plan, core.now(), core.now());
  insert into app.allowances (organisation_id, period_start, period_end)
  select v_id, p.period_start, p.period_end from core.period_at(core.now(), core.now()) p;
  insert into app.counters (organisation_id) values (v_id);
  insert into app.members (organisation_id, user_id, role, created_at)
  values (v_id, core.add_user(create_organisation.owner_email), 'owner', core.now());
  perform core.audit('create_organisation', v_id, core.encode_id('org', v_id), null, jsonb_build_object(
    'name', create_organisation.name, 'owner_email', create_organisation.owner_email, 'plan', v_plan));
  return core.encode_id('org', v_id);
end
$$;

comment on function ops.create_organisation is
  'Create an organisation and return its ID. Its first billing period starts now. The owner may sign in to its dashboard.';
