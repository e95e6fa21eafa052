create function core.error(catalogue jsonb, code text, fields jsonb, words text default null)
returns jsonb
language plpgsql immutable
as $$
begin
  if fields is null and words is null then
    return catalogue -> code;
  end if;
  return (catalogue -> code) || jsonb_strip_nulls(jsonb_build_object('message', words, 'fields', fields));
end
$$;

comment on function core.error is
  'The error object of a code, null for none. catalogue: the service''s message for each code; words: the message when that one says too little.';
