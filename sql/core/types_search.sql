-- The search for messages.

create type core.message_filter as (
  status app.message_status,
  channel app.channel,
  class app.class,
  mode app.mode,
  tag text,
  "to" text,
  "from" text,
  since timestamptz,
  until timestamptz,
  subject text
);
comment on type core.message_filter is
  'Record of api.list_messages(filter), api.dashboard_messages(filter). Messages that match all that is given.';
comment on column core.message_filter.status is 'absent: any';
comment on column core.message_filter.channel is 'absent: both';
comment on column core.message_filter.class is 'absent: both';
comment on column core.message_filter.mode is 'absent: both';
comment on column core.message_filter.tag is 'absent: any; one of the tags of a message';
comment on column core.message_filter."to" is
  'absent: any; a recipient (to, cc or bcc): an address in lower case, or a number';
comment on column core.message_filter."from" is 'absent: any; the address or sender ID, in any case';
comment on column core.message_filter.since is 'absent: as long as messages are kept; the first time of acceptance';
comment on column core.message_filter.until is 'absent: now; messages were accepted before this time';
comment on column core.message_filter.subject is 'absent: any; a part of the subject, in any case';

create type core.message_term as (
  organisation_id uuid,
  term text,
  message_id uuid,
  place bigint
);
comment on type core.message_term is
  'A message with a term. place: its place among the messages of its organisation that are indexed together; null if there may be any number between them.';

create type core.search_condition as (
  terms text[],
  last_id uuid,
  first_id uuid,
  ids uuid[]
);
comment on type core.search_condition is
  'Terms of which a message must have one, and where the newest such messages may be: ids, or null for all of a span; from first_id to last_id.';
