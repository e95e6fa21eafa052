create function ops.create_plan(
  id text, name text, price_rand integer, emails_included integer, sms_included integer, domains_included integer,
  test_messages_daily integer default 10000
)
returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_plan app.plans := (id, name, price_rand, emails_included, sms_included, domains_included, test_messages_daily);
begin
  if id is null or id !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
    raise exception 'the ID must be 1 to 64 lower-case letters, digits, hyphens and underscores, and start with a letter or digit';
  end if;
  perform core.check_plan_terms(v_plan);
  insert into app.plans values (v_plan.*) on conflict on constraint plans_pkey do nothing;
  if not found then
    raise exception 'a plan % already exists', quote_literal(id);
  end if;
  perform core.audit('create_plan', null, id, null, to_jsonb(v_plan) - 'id');
  return id;
end
$$;

comment on function ops.create_plan is
  'Create a plan and return its ID. The price is in rand a month. The plan includes numbers of email recipients and SMS segments a month and of sending domains, and limits test and sandbox messages a day.';
