-- Work that takes longer than a request of a page of operators. The clock does it.

alter table app.audit_chain
  add column verified_seals bigint not null default 0,
  add column verified_at timestamptz,
  add column is_complete boolean,
  add constraint audit_chain_verified_with_result check ((verified_at is null) = (is_complete is null));
comment on column app.audit_chain.verified_seals is 'The last seal that the last full verification read; 0 before the first.';
comment on column app.audit_chain.verified_at is 'When it was made.';
comment on column app.audit_chain.is_complete is 'What it found, see core.audit_is_complete.';
