create function api.enqueue_due_messages()
returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due app.due_messages[];
begin
  with due as (
    select d.message_id
    from app.due_messages d
    left join app.organisations o on d.due_at is null and o.id = d.organisation_id
    -- Both ends of the index: between them wait those of the next 30 days.
    where (d.due_at <= core.now() + interval '90 seconds' or d.due_at is null)
      -- Held ones that are late are let go, and are rejected by whoever takes their jobs.
      and (d.due_at is not null or o.state <> 'paused' or d.late_at < core.now())
    -- Bounded, so that one transaction never holds an hour's work; the caller asks again.
    limit 20000
    for update of d skip locked
  ),
  released as (
    delete from app.due_messages d
    using due
    where d.message_id = due.message_id
    returning d.*
  )
  select array_agg(r::app.due_messages) into v_due from released r;
  return core.release_messages(v_due);
end
$$;

comment on function api.enqueue_due_messages is
  'Enqueue what falls due within 90 seconds, each to its second, what was held for organisations that may send again, and what was held until it was late. Answers how many, at most 20 000.';
