create function core.add_hard_bounces(bounces core.hard_bounce[])
returns void
language sql volatile
as $$
  insert into app.hard_bounces as b (email, cell, note, message_id, created_at)
  select distinct on (n.email) n.email, core.cell_number(), n.note, n.message_id,
    -- Newer than the row of a cell that removed the suppression.
    greatest(core.now(), (
      select max(o.removed_at) + interval '1 microsecond' from app.hard_bounces o where o.email = n.email))
  from unnest(bounces) n
  order by n.email
  -- Locks an existing row too, so that ops.unsuppress_globally waits for the copies that the caller makes.
  on conflict on constraint hard_bounces_pkey do update
  set (note, message_id, created_at, removed_at) = (
    select c.note, c.message_id, c.created_at, null::timestamptz
    from (values
      (true, b.note, b.message_id, b.created_at),
      (false, excluded.note, excluded.message_id, greatest(excluded.created_at, b.removed_at + interval '1 microsecond'))
    ) c (applies, note, message_id, created_at)
    where c.applies = (b.removed_at is null and not exists (
      select from app.hard_bounces o where o.email = b.email and o.removed_at >= b.created_at)))
$$;

comment on function core.add_hard_bounces is
  'Suppress addresses for every organisation. An entry of this cell that applies already stays as it is, but is locked.';
