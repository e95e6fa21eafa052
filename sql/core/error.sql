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
  'Returns the error object of a code; null if the code is null. catalogue has the service''s message for each code; words replaces that message if not null.';
