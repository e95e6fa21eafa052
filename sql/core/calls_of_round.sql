create function core.calls_of_round(calls jsonb, round integer default null)
returns table (
  n integer, organisation_id uuid, mode app.mode, key text, fingerprint text, batch boolean, round integer
)
language sql stable
as $$
  select *
  from (
    select c.*,
      (row_number() over (partition by c.organisation_id, c.mode, c.key order by c.n))::integer as round
    from jsonb_populate_recordset(null::core.accept_call, calls) as c
  ) c
  where c.round = calls_of_round.round or calls_of_round.round is null
$$;

comment on function core.calls_of_round is
  'Returns the calls of an accept, of one round or of all. Calls with the same idempotency key are in different rounds, so that the second finds the response to the first.';
