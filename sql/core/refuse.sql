create function core.refuse(code text, fields jsonb default null, words text default null, retry_after integer default null)
returns void
language plpgsql volatile
as $$
begin
  raise exception using errcode = 'MSREF', message = code,
    detail = jsonb_strip_nulls(jsonb_build_object('fields', fields, 'message', words, 'retryAfter', retry_after));
end
$$;

comment on function core.refuse is
  'Refuse a call with an error code: rolls back and reaches the caller as a Refusal. words: the message when the code''s own says too little; retry_after: seconds.';
