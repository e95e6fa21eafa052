create function core.release_held(organisation_id uuid)
returns integer
language sql volatile
as $$
  with released as (
    delete from app.due_messages d
    where d.organisation_id = release_held.organisation_id and d.due_at is null
    returning d.*
  )
  select core.release_messages(array_agg(r::app.due_messages)) from released r
$$;

comment on function core.release_held is
  'Enqueue the messages that were held while their organisation was paused. Returns how many.';
