create aggregate core.fits(amount integer, available integer) (
  sfunc = core.add_if_fits,
  stype = bigint[],
  initcond = '{0,0}',
  finalfunc = core.last_fitted
);

comment on aggregate core.fits(integer, integer) is
  'Over a window in order of arrival: whether this row''s amount still fits, given that each earlier one was taken only if it fitted. The result is the same as for requests that come one by one.';
