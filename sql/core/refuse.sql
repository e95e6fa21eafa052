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
  'Refuse a call with an error code. This rolls back the transaction and reaches TypeScript as a Refusal. words replaces the default message of the code; retry_after is in seconds.';
