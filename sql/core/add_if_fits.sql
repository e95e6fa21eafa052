create function core.add_if_fits(state bigint[], amount integer, available bigint, call integer)
returns bigint[]
language plpgsql immutable
as $$
begin
  -- An amount of 0 always fits.
  if amount = 0 then
    return array[state[1], 1, state[3]];
  end if;
  if state[3] = call or state[1] + amount > available then
    return array[state[1], 0, call];
  end if;
  return array[state[1] + amount, 1, null];
end
$$;

comment on function core.add_if_fits is
  'Step of core.fits: the amount taken so far, whether the last one fitted, and the call that ran short.';
