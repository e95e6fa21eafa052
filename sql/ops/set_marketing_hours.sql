create function ops.set_marketing_hours(rule text)
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
begin
  if rule is null or rule not in ('interface', 'statutory') then
    raise exception 'the rule must be interface or statutory';
  end if;
  update app.sms_settings s set marketing_hours = rule::app.hours_rule;
end
$$;

comment on function ops.set_marketing_hours is
  'Decide when marketing SMS may be sent, in South African time: interface, Monday to Saturday from 08:00 to 20:00; or statutory, Saturdays from 09:00 to 13:00 only and not on public holidays.';
