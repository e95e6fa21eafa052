create function core.erase_traces(person text)
returns integer
language plpgsql volatile
as $$
declare
  v_rows integer;
  v_total integer := 0;
begin
  update app.idempotency_keys k set body = core.unnamed(k.body, person)
  -- The first alone is cheap, and there may be millions.
  where strpos(lower(k.body), ltrim(person, '+')) > 0 and core.unnamed(k.body, person) <> k.body;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  delete from app.early_receipts e where e.receipt ->> 'phone' = person;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  -- A provider that still suppresses somebody who is erased does right.
  delete from graphile_worker._private_jobs j
  using graphile_worker._private_tasks t
  where t.id = j.task_id and t.identifier = 'forget_suppression' and lower(j.payload ->> 'email') = person;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;
  update graphile_worker._private_jobs j set last_error = core.unnamed(j.last_error, person)
  where core.unnamed(j.last_error, person) <> j.last_error;
  get diagnostics v_rows = row_count;
  v_total := v_total + v_rows;

  update app.provider_health h set last_error = core.unnamed(h.last_error, person)
  where core.unnamed(h.last_error, person) <> h.last_error;
  update app.clock_runs r set error = core.unnamed(r.error, person)
  where core.unnamed(r.error, person) <> r.error;
  update app.notices n set detail = core.unnamed(n.detail::text, person)::jsonb
  where core.unnamed(n.detail::text, person) <> n.detail::text;

  return v_total;
end
$$;

comment on function core.erase_traces is
  'Take a person, by an address in lower case or a number, out of what is kept beside messages: answers for replays, receipts that came early, jobs, errors. Returns how many rows.';
