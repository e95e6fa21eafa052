-- The index of the search for messages. The clock fills it behind the accepts, which pay nothing for it.

create table app.message_terms (
  term text collate "C" not null,
  organisation_id uuid not null,
  first_id uuid not null,
  last_id uuid not null,
  primary key (term, organisation_id, first_id),
  constraint message_terms_are_in_order check (first_id <= last_id)
) partition by range (first_id);
comment on table app.message_terms is
  'By what messages are searched: recipients, senders, tags, and kinds with statuses. A row says where messages of an organisation with a term are: in a span of IDs in which at least one of 33 messages has the term, so that a rare term leads to its messages and a common one takes few rows. The spans of a term never overlap.';
comment on column app.message_terms.term is
  'What the messages have in common: to:ADDRESS, from:ADDRESS, tag:TAG, is:CHANNEL CLASS MODE, or is:CHANNEL CLASS MODE STATUS. The last may be out of date.';
comment on column app.message_terms.first_id is 'The first message of the span. A span is within one month.';
comment on column app.message_terms.last_id is
  'The last message of the span. A recipient has a row for each message, so that the row proves it.';

create table app.search_progress (
  pass text primary key
    constraint search_progress_pass check (pass in ('accepted', 'settled')),
  indexed_until uuid not null,
  seen_at timestamptz,
  seen_xid xid8
);
insert into app.search_progress (pass, indexed_until)
values ('accepted', '00000000-0000-0000-0000-000000000000'), ('settled', '00000000-0000-0000-0000-000000000000');
comment on table app.search_progress is 'How far the index of the search has come.';
comment on column app.search_progress.pass is
  'accepted: all terms, with statuses that are rare; settled: statuses of messages that are a day old.';
comment on column app.search_progress.indexed_until is 'The index holds all messages up to this ID.';
comment on column app.search_progress.seen_at is
  'When seen_xid was noted. Messages accepted well before are all visible once no earlier transaction is running.';
comment on column app.search_progress.seen_xid is 'The transaction ID that was next at seen_at.';
