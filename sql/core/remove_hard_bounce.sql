create function core.remove_hard_bounce(email text)
returns text
language plpgsql volatile
as $$
declare
  v_cell smallint := core.cell_number();
  v_note text;
begin
  -- A bounce that is recorded at the same time comes first or waits.
  perform from app.hard_bounces b where b.email = remove_hard_bounce.email and b.cell = v_cell for update;
  select b.note into v_note from core.hard_bounces_of(remove_hard_bounce.email) b;
  if v_note is null then
    return null;
  end if;
  -- Rows of other cells stay, so this cell keeps a newer one that removes them.
  insert into app.hard_bounces as b (email, cell, created_at, removed_at)
  select n.email, v_cell, max(n.created_at),
    greatest(core.now(), max(coalesce(n.removed_at, n.created_at)) + interval '1 microsecond')
  from app.hard_bounces n
  where n.email = remove_hard_bounce.email
  group by n.email
  having bool_or(n.cell <> v_cell and n.removed_at is null)
  on conflict on constraint hard_bounces_pkey do update
  set removed_at = excluded.removed_at, note = '', message_id = null;
  if not found then
    delete from app.hard_bounces b where b.email = remove_hard_bounce.email and b.cell = v_cell;
  end if;
  return v_note;
end
$$;

comment on function core.remove_hard_bounce is
  'Remove the suppression of an address (in lower case) for every organisation, in all cells. Returns its note; null if the address is not suppressed.';
