create view ops.users as
select u.email, u.is_operator,
  (select count(*) from app.members m where m.user_id = u.id)::integer as organisations,
  (select count(*) from app.sessions s where s.user_id = u.id)::integer as sessions,
  (select max(s.seen_at) from app.sessions s where s.user_id = u.id) as seen_at,
  u.created_at
from app.users u
order by u.email;

comment on view ops.users is 'People who may sign in to the dashboard.';

comment on column ops.users.email is 'The address to which the links are sent that sign in.';
comment on column ops.users.is_operator is 'Whether the person may use the operator pages.';
comment on column ops.users.organisations is 'Number of organisations to which the person belongs.';
comment on column ops.users.sessions is 'Number of sessions that were not signed out; some may have ended by time.';
comment on column ops.users.seen_at is 'The last request of these sessions; null if there are none.';
comment on column ops.users.created_at is 'When the person was added.';
