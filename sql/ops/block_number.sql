create function ops.block_number(phone text, note text default '')
returns void
language plpgsql volatile security definer
set search_path = ''
as $$
#variable_conflict use_column
begin
  perform core.check_phone(block_number.phone);
  if length(block_number.note) > 1000 then
    raise exception 'the note may have 1000 characters';
  end if;
  insert into app.blocked_numbers (phone, note, created_at)
  values (block_number.phone, coalesce(block_number.note, ''), core.now())
  on conflict (phone) do nothing;
end
$$;

comment on function ops.block_number is
  'Note that a number is on the national opt-out registry: no marketing to it from any organisation.';
