create function ops.block_number(phone text, note text default '')
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after jsonb;
begin
  perform core.check_phone(block_number.phone);
  if length(block_number.note) > 1000 then
    raise exception 'the note must be at most 1000 characters';
  end if;
  if core.block_numbers(array[block_number.phone], coalesce(block_number.note, '')) > 0 then
    v_after := jsonb_build_object('note', coalesce(block_number.note, ''));
  end if;
  perform core.audit('block_number', null, block_number.phone, null, v_after);
end
$$;

comment on function ops.block_number is
  'Block marketing SMS to a number that is on the national opt-out registry. The block applies to every organisation.';
