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

  update app.audit a
  -- A row has to say that something changed, also where the words were all of the change.
  set target = core.unnamed(a.target, person), before = nullif(t.before, t.after), after = t.after
  from (
    select x.id, core.unnamed(w.before::text, person)::jsonb as before, core.unnamed(w.after::text, person)::jsonb as after
    from app.audit x
    -- What was noted of somebody by hand may say more than their number.
    cross join lateral (select
      case lower(x.target) when person then core.redacted(x.before) else x.before end as before,
      case lower(x.target) when person then core.redacted(x.after) else x.after end as after
    ) w
    -- The address of an owner is the organisation's.
    where x.action not in ('create_organisation', 'set_owner_email')
      and core.unnamed(concat_ws(' ', x.target, x.before, x.after), person)
        <> concat_ws(' ', x.target, x.before, x.after)
  ) t
  where a.id = t.id;
  get diagnostics v_rows = row_count;
  return v_total + v_rows;
end
$$;

comment on function core.erase_traces is
  'Take a person, by an address in lower case or a number, out of what is kept beside messages: answers for replays, receipts that came early, jobs, errors, the audit. Answers how many rows.';
