create aggregate core.fits(amount integer, available bigint, call integer) (
  sfunc = core.add_if_fits,
  stype = bigint[],
  initcond = '{0,0,NULL}',
  finalfunc = core.last_fitted
);

comment on aggregate core.fits(integer, bigint, integer) is
  'Over a window in order of arrival: whether this row''s amount still fits, given that each earlier one was taken only if it fitted. After a row that does not fit, no other row of the same call fits: a batch that runs short part-way fails to its end. The rows of a call must be neighbours; rows that are judged one by one have a call each.';
