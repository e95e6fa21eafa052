create function ops.create_plan(
  id text, name text, price_rand integer, emails_included integer, sms_included integer, domains_included integer
)
returns text
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
begin
  if create_plan.id is null or create_plan.id !~ '^[a-z0-9][a-z0-9_-]{0,63}$' then
    raise exception 'the id must be 1 to 64 lower-case letters, digits, hyphens or underscores, a letter or digit first';
  elsif coalesce(length(create_plan.name), 0) not between 1 and 200 then
    raise exception 'the name must be 1 to 200 characters';
  elsif num_nulls(price_rand, emails_included, sms_included, domains_included) > 0
    or least(price_rand, emails_included, sms_included, domains_included) < 0 then
    raise exception 'the price and what is included must be numbers from 0 on';
  end if;
  insert into app.plans (id, name, price_rand, emails_included, sms_included, domains_included)
  values (create_plan.id, create_plan.name, create_plan.price_rand, create_plan.emails_included,
    create_plan.sms_included, create_plan.domains_included)
  on conflict on constraint plans_pkey do nothing;
  if not found then
    raise exception 'there is a plan % already', quote_literal(create_plan.id);
  end if;
  return create_plan.id;
end
$$;

comment on function ops.create_plan is
  'Create a plan: what it costs in rand each month, and the email recipients, SMS segments and domains that it includes.';
