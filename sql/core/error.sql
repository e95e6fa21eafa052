create function core.error(catalogue jsonb, code text, fields jsonb)
returns jsonb
language plpgsql immutable
as $$
begin
  if fields is null then
    return catalogue -> code;
  end if;
  return (catalogue -> code) || jsonb_build_object('fields', fields);
end
$$;

comment on function core.error is
  'The error of interface section 7 for a code, null for none; catalogue is what the service says of each code.';
