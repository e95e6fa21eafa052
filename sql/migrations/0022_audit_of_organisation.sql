-- What the pages Team and Usage of the dashboard read by a key: the audit of an organisation, and what it used by day.

create index audit_organisation_id on app.audit (organisation_id, id);

-- Of days before this migration it is 0: readers take accepted if that is more.
alter table app.daily_volume
  add column units bigint not null default 0;
comment on column app.daily_volume.units is
  'What the accepted messages took of the plan or of credits: recipients of emails, segments of SMS.';
