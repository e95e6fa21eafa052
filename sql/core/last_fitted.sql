create function core.last_fitted(state bigint[])
returns boolean
language plpgsql immutable
as $$
begin
  return state[2] = 1;
end
$$;

comment on function core.last_fitted is 'Result of core.fits.';
