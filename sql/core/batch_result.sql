create function core.batch_result(index integer, message_id text, error jsonb)
returns text
language plpgsql immutable
as $$
begin
  if error is null then
    return format('{"index":%s,"ok":true,"data":{"id":"%s","status":"queued"}}', index, message_id);
  end if;
  return format('{"index":%s,"ok":false,"error":%s}', index, error);
end
$$;

comment on function core.batch_result is 'One result of a batch as JSON text (interface 4.2).';
