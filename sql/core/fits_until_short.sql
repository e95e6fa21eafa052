create aggregate core.fits_until_short(amount integer, available bigint, call integer) (
  sfunc = core.add_until_short,
  stype = bigint[],
  initcond = '{0,0,NULL}',
  finalfunc = core.last_fitted
);

comment on aggregate core.fits_until_short(integer, bigint, integer) is
  'Like core.fits, but after a row that does not fit, no other row of the same call fits: a batch that runs short part-way fails to its end. The rows of a call must be neighbours.';
