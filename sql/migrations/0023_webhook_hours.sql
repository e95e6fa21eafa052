-- Sums of webhook attempts, so that no page reads millions of attempts.

create table app.webhook_hours (
  endpoint_id uuid not null,
  hour timestamptz not null,
  attempts integer not null,
  succeeded integer not null,
  primary key (endpoint_id, hour),
  constraint webhook_hours_succeeded_of_attempts check (succeeded between 0 and attempts)
-- Each hour has one row of an endpoint, which every batch of results updates.
) with (fillfactor = 50);
comment on table app.webhook_hours is
  'Attempts at each enabled endpoint by the UTC hour in which they were recorded. Rows are deleted after two days.';
comment on column app.webhook_hours.succeeded is 'Attempts that the endpoint took.';
