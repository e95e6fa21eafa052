-- The counts of an endpoint's current hour, in the row that changes with each batch of results anyway.
alter table app.webhook_endpoints
  add column counted_hour timestamptz,
  add column hour_attempts integer not null default 0,
  add column hour_succeeded integer not null default 0;
comment on column app.webhook_endpoints.counted_hour is
  'The UTC hour of hour_attempts and hour_succeeded; null before the first attempt.';
comment on column app.webhook_endpoints.hour_attempts is
  'Attempts in that hour. The first result of a later hour moves them to app.webhook_hours.';
comment on column app.webhook_endpoints.hour_succeeded is 'Attempts of that hour that the endpoint took.';
comment on column app.webhook_endpoints.failed_at is 'The last failure.';
comment on table app.webhook_hours is
  'Attempts at each enabled endpoint by the UTC hour in which they were recorded, without the hour that app.webhook_endpoints still counts. Rows are deleted after two days.';
