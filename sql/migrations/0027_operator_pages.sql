-- Work that takes longer than a request of a page of operators. The clock does it.

alter table app.audit_chain
  add column verified_seals bigint not null default 0,
  add column verified_at timestamptz,
  add column is_complete boolean,
  add constraint audit_chain_verified_with_result check ((verified_at is null) = (is_complete is null));
comment on column app.audit_chain.verified_seals is 'The last seal that the last full verification read; 0 before the first.';
comment on column app.audit_chain.verified_at is 'When it was made.';
comment on column app.audit_chain.is_complete is 'What it found, see core.audit_is_complete.';

create table app.erasures (
  id bigint generated always as identity primary key,
  person text
    constraint erasures_person_once unique,
  requested_by text not null,
  requested_at timestamptz not null,
  tried_at timestamptz,
  error text,
  finished_at timestamptz,
  rows integer,
  constraint erasures_name_nobody_once_finished check ((person is null) = (finished_at is not null)),
  constraint erasures_finished_with_rows check ((rows is null) = (finished_at is null))
);
comment on table app.erasures is 'Erasures of people that operators requested on their page. The clock makes them.';
comment on column app.erasures.person is 'The address in lower case, or the number; null once the person is erased.';
comment on column app.erasures.requested_by is 'The address of the operator.';
comment on column app.erasures.tried_at is 'When it was last refused; null if it was not.';
comment on column app.erasures.error is 'Why it was refused then; it is tried again.';
comment on column app.erasures.rows is 'How many rows named the person; null before.';
