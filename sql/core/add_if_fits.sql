create function core.add_if_fits(state bigint[], amount integer, available integer)
returns bigint[]
language plpgsql immutable
as $$
begin
  if state[1] + amount <= available then
    return array[state[1] + amount, 1];
  end if;
  return array[state[1], 0];
end
$$;

comment on function core.add_if_fits is 'Step of core.fits: the amount taken so far, and whether the last one fitted.';
