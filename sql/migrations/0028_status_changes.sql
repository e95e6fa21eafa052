-- Changes of many messages in one row: a row for each was three of the rows that a message costs.

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
