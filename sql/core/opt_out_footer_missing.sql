create function core.opt_out_footer_missing()
returns text
language sql immutable
as $$
  select 'The text does not say how to opt out by STOP, as in "Reply STOP to opt out".'
$$;

comment on function core.opt_out_footer_missing is
  'Returns the message of the error code opt_out_footer_missing, which the API also shows as a warning.';
