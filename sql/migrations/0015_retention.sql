create table app.retention (
  what text primary key
    constraint retention_what check (what in ('messages', 'bodies', 'webhooks')),
  days integer not null
    constraint retention_days_sensible check (days between 1 and 3660)
);
insert into app.retention (what, days) values ('messages', 400), ('bodies', 30), ('webhooks', 30);
comment on table app.retention is 'For how many days data is kept.';
comment on column app.retention.what is
  'messages (with their timelines), bodies, or webhooks (events and attempts).';
