create view ops.cells as
select c.number, c.letter, c.name, true as is_this_cell, null::timestamptz as joined_at,
  (select h.heartbeat_at from app.cell_heartbeats h where h.cell = c.number) as heartbeat_at,
  null::boolean as is_replicating, null::bigint as errors
from app.cell c
union all
select o.number, o.letter, o.name, false, o.joined_at, o.heartbeat_at, o.is_replicating, o.errors
from core.other_cells() o;

comment on view ops.cells is
  'This cell and the cells that it has joined, with the state of the lists that arrive from them.';

comment on column ops.cells.number is 'The number of the cell, 1 to 26.';
comment on column ops.cells.letter is 'The letter in its API keys; keys of cell 1 have none.';
comment on column ops.cells.name is 'The name of the cell.';
comment on column ops.cells.is_this_cell is 'Whether it is the cell of this database.';
comment on column ops.cells.joined_at is 'When this cell joined it; null for this cell.';
comment on column ops.cells.heartbeat_at is
  'Its last heartbeat that arrived here with its lists; null before the first. The lists are behind by its age.';
comment on column ops.cells.is_replicating is 'Whether its lists are being applied here; null for this cell.';
comment on column ops.cells.errors is
  'How often applying its lists failed, since the counters of Postgres were reset; null for this cell.';
