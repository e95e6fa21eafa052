-- Which API keys are in use, and how the tables grow.

-- Existing keys count as used today: nothing is known about them.
alter table app.api_keys add column last_used_on date default current_date;
alter table app.api_keys alter column last_used_on drop default;
comment on column app.api_keys.last_used_on is
  'UTC day of the last request; null if there was none. Keys from before this column begin with the day of its migration.';

create table app.table_sizes (
  day date not null,
  name text not null
    constraint table_sizes_name_length check (length(name) <= 200),
  bytes bigint not null,
  rows bigint not null,
  primary key (day, name)
);
comment on table app.table_sizes is 'The size of each table by UTC day, with indexes; partitions count to their table.';
comment on column app.table_sizes.rows is 'An estimate of Postgres.';
