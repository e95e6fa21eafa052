create function core.release_held(organisation_id uuid)
returns integer
language plpgsql volatile
as $$
declare
  v_due app.due_messages[];
begin
  with released as (
    delete from app.due_messages d
    where d.organisation_id = release_held.organisation_id and d.due_at is null
    returning d.*
  )
  select array_agg(r::app.due_messages) into v_due from released r;
  return core.release_messages(v_due);
end
$$;

comment on function core.release_held is
  'Enqueue the messages that were held while their organisation was paused. Returns how many.';
