create view ops.members as
select core.encode_id('org', m.organisation_id) as organisation, o.name, u.email, m.role, m.created_at
from app.members m
join app.organisations o on o.id = m.organisation_id
join app.users u on u.id = m.user_id
order by o.name, o.id, m.role desc, u.email;

comment on view ops.members is 'Which people may open the dashboard of which organisation.';

comment on column ops.members.organisation is 'The organisation''s ID, org_….';
comment on column ops.members.name is 'The organisation''s name.';
comment on column ops.members.email is 'The address of the person.';
comment on column ops.members.role is 'viewer reads, member also changes things, owner also makes keys, secrets and members.';
comment on column ops.members.created_at is 'When the person was invited.';
