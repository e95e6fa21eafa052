-- One row for what a call did with many messages, in place of a row for each: the sandbox, and status changes. And
-- more heap-only updates of messages.

-- First, as its functions lock the sandbox before they record status changes.
lock table app.sandbox_messages;

create table app.sandbox_batches (
  message_ids uuid[] not null
    constraint sandbox_batches_have_messages check (cardinality(message_ids) > 0),
  copies smallint[] not null
    constraint sandbox_batches_copy_of_each check (cardinality(copies) = cardinality(message_ids)),
  taken_at timestamptz not null
);
comment on table app.sandbox_batches is
  'Messages that the sandbox took, those of one call in a row. A message that is taken twice is in two rows.';
comment on column app.sandbox_batches.message_ids is
  'At most 100, so that Postgres keeps them in the row and not in a table apart.';
comment on column app.sandbox_batches.copies is
  'For each message. Of an email: the number of the copy, or 0 for one email to all recipients. Of an SMS: the number of the part, or 0 for the reply to it.';

create table app.sandbox_reports (
  id bigint generated always as identity primary key,
  kind text not null
    constraint sandbox_reports_kind check (kind in ('email', 'sms', 'reply')),
  reports jsonb not null,
  due_at timestamptz not null
);
create index sandbox_reports_due_at on app.sandbox_reports (due_at);
comment on table app.sandbox_reports is
  'What the sandbox will report about messages that it took, those of one call in a row, deleted once reported.';
comment on column app.sandbox_reports.kind is
  'Receipts of emails, receipts of parts of SMS, or replies to SMS.';
comment on column app.sandbox_reports.reports is 'An array for each message.';

insert into app.sandbox_batches (message_ids, copies, taken_at)
select array_agg(s.message_id), array_agg(s.copy), max(s.taken_at)
from (
  select m.message_id, m.copy, m.taken_at, row_number() over (order by m.taken_at) / 100 as batch
  from app.sandbox_messages m
  cross join generate_series(1, m.attempts)
) s
group by s.batch;
insert into app.sandbox_reports (kind, reports, due_at)
select s.kind, jsonb_agg(s.reports), max(s.due_at)
from (
  select m.kind, m.reports, m.due_at, row_number() over (order by m.due_at) / 100 as batch
  from app.sandbox_messages m
  where m.due_at is not null
) s
group by s.kind, s.batch;
drop table app.sandbox_messages;
create index sandbox_batches_message_ids on app.sandbox_batches using gin (message_ids) with (fastupdate = off);

alter table app.status_changes
  alter column message_id drop not null,
  add column message_ids uuid[],
  -- Not checked for the rows that are there, which have a message_id: accepts wait for this lock.
  add constraint status_changes_name_messages check ((message_id is null) = (cardinality(message_ids) > 0)) not valid;
comment on table app.status_changes is
  'Changes of live messages that are not in the sums yet: those that a call made in one row, deleted once summed.';
comment on column app.status_changes.message_id is 'null; only rows of versions before 0028 have it, in place of message_ids.';
comment on column app.status_changes.message_ids is
  'At most 100, so that Postgres keeps them in the row and not in a table apart. null in rows of versions before 0028.';

-- As core.make_partition says. It concerns new pages only.
do $$
declare
  v_partition regclass;
begin
  for v_partition in
    select i.inhrelid from pg_inherits i where i.inhparent = 'app.messages'::regclass
  loop
    execute format('alter table %s set (fillfactor = 48)', v_partition);
  end loop;
end
$$;
