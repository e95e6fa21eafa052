create function ops.set_marketing_hours(rule text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before text;
begin
  if rule is null or rule not in ('interface', 'statutory') then
    raise exception 'the rule must be interface or statutory';
  end if;
  select s.marketing_hours into v_before from app.sms_settings s for no key update;
  update app.sms_settings s set marketing_hours = rule::app.hours_rule;
  perform core.audit('set_marketing_hours', null, null, jsonb_build_object('rule', v_before), jsonb_build_object('rule', rule));
end
$$;

comment on function ops.set_marketing_hours is
  'Set the hours in which marketing SMS may be sent. In South African time, interface is Monday to Saturday from 08:00 to 20:00. statutory is narrower: Saturdays only from 09:00 to 13:00, and not on public holidays.';
