create function core.check_plan_terms(
  name text, price_rand integer, emails_included integer, sms_included integer, domains_included integer,
  test_messages_daily integer
)
returns void
language plpgsql immutable
as $$
begin
  perform core.check_name(name);
  if num_nulls(price_rand, emails_included, sms_included, domains_included, test_messages_daily) > 0
    or least(price_rand, emails_included, sms_included, domains_included, test_messages_daily) < 0 then
    raise exception 'the price and the allowances must be 0 or more';
  end if;
end
$$;

comment on function core.check_plan_terms is
  'Raises an error if a plan cannot have this name, price or these allowances.';
