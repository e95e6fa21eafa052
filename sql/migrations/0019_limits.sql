-- Limits on what costs an organisation nothing: test and sandbox messages a day, and refusals that name
-- the hard bounces of other organisations.

alter table app.plans
  add test_messages_daily integer not null default 10000
    constraint plans_test_messages_not_negative check (test_messages_daily >= 0);

alter table app.allowances
  add test_messages integer not null default 0
    constraint allowances_test_messages_not_negative check (test_messages >= 0),
  add test_day date;
comment on column app.allowances.test_messages is
  'Test messages and sandbox messages beside a real provider, accepted on test_day.';
comment on column app.allowances.test_day is 'In UTC; null before the first accepted message.';

create table app.named_bounces (
  organisation_id uuid primary key references app.organisations,
  hour timestamptz not null,
  addresses bigint not null
    constraint named_bounces_addresses_positive check (addresses > 0),
  exceeded_at timestamptz
) with (fillfactor = 50);
comment on table app.named_bounces is
  'How many addresses that bounced for other organisations an organisation asked to send to, in the last hour in which it did.';
comment on column app.named_bounces.exceeded_at is 'When it last went over the limit of an hour.';
