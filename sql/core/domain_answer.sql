create function core.domain_answer(kept app.idempotency_keys)
returns jsonb
language sql immutable
as $$
  select case
    when kept.status is null then '{"verdict": "busy"}'
    else jsonb_build_object('verdict', 'answer', 'status', kept.status, 'body', kept.body, 'replayed', true)
  end
$$;

comment on function core.domain_answer is
  'Returns fields of api.domain_work for a call whose idempotency key was used before: the response to replay, or busy while the first call is still running.';
