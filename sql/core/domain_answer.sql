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
  'What a call finds whose key was used before, as fields of api.domain_work: an answer to replay, or that the first is still under way.';
