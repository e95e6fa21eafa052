create view ops.moved_organisations as
select core.encode_id('org', d.organisation_id) as organisation, o.name, d.cell, d.moved_at, d.purged_at
from app.moved_organisations d
join app.organisations o on o.id = d.organisation_id;

comment on view ops.moved_organisations is 'Organisations that are in another cell since a division.';

comment on column ops.moved_organisations.organisation is 'The organisation''s ID, org_…, the same in the other cell.';
comment on column ops.moved_organisations.name is 'Its name when the cell was divided.';
comment on column ops.moved_organisations.cell is 'The number of the cell that has it.';
comment on column ops.moved_organisations.moved_at is 'When the cell was divided.';
comment on column ops.moved_organisations.purged_at is
  'When the clock had deleted its messages here; null while some are left.';
