create aggregate core.fits_until_short(amount integer, available bigint, call integer) (
  sfunc = core.add_until_short,
  stype = bigint[],
  initcond = '{0,0,NULL}',
  finalfunc = core.last_fitted
);

comment on aggregate core.fits_until_short(integer, bigint, integer) is
  'Like core.fits, but once a row did not fit, none of the same call does: what runs short part-way fails to its end (interface 4.11). The rows of a call must be neighbours.';
