create function core.keep_answer(
  organisation_id uuid, mode app.mode, key text, fingerprint text, status integer, body text
)
returns void
language sql volatile
as $$
  insert into app.idempotency_keys (organisation_id, mode, key, created_at, fingerprint, status, body)
  select keep_answer.organisation_id, keep_answer.mode, keep_answer.key, core.now(),
    keep_answer.fingerprint, keep_answer.status, keep_answer.body
  where keep_answer.key is not null
$$;

comment on function core.keep_answer is
  'Keep what a call is answered for the replays of its idempotency key; nothing without a key. The organisation must be locked.';
