create view ops.sms_settings as
select s.shared_sender, s.marketing_hours
from app.sms_settings s;

comment on view ops.sms_settings is
  'The shared sender and the hours of marketing SMS. ops.set_shared_sender and ops.set_marketing_hours change them.';

comment on column ops.sms_settings.shared_sender is 'The sender of SMS whose caller names none.';
comment on column ops.sms_settings.marketing_hours is 'interface or statutory, see ops.set_marketing_hours.';
