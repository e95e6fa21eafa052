create function core.batch_result(index integer, data text, error jsonb)
returns text
language plpgsql immutable
as $$
begin
  if error is null then
    return format('{"index":%s,"ok":true,"data":%s}', index, data);
  end if;
  return format('{"index":%s,"ok":false,"error":%s}', index, error);
end
$$;

comment on function core.batch_result is 'Returns one result of a batch as JSON text.';
