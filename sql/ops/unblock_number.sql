create function ops.unblock_number(phone text)
returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  select jsonb_build_object('note', b.note) into v_before from core.blocked_numbers_of(unblock_number.phone) b;
  perform core.unblock_numbers(array[unblock_number.phone]);
  if core.lift_suppression_hashes(unblock_number.phone, null, '{registry}') <> '{}' then
    v_before := coalesce(v_before, '{"note": "(erased)"}');
  end if;
  if v_before is null then
    raise exception '% is not blocked', coalesce(quote_literal(unblock_number.phone), 'null')
      using hint = 'select phone, note from ops.blocked_numbers';
  end if;
  perform core.audit('unblock_number', null, unblock_number.phone, v_before, null);
end
$$;

comment on function ops.unblock_number is 'Allow marketing SMS to a number that left the opt-out registry.';
