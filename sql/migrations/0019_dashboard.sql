-- Who signs in to the dashboard: users, their roles in organisations, links that sign in, and sessions.

create type app.member_role as enum ('viewer', 'member', 'owner');

create table app.users (
  id uuid primary key,
  email text not null
    constraint users_one_per_address unique
    constraint users_email_is_lower_case check (email = lower(email))
    constraint users_email_length check (length(email) between 3 and 254),
  is_operator boolean not null default false,
  created_at timestamptz not null default now()
);
comment on table app.users is 'People who may sign in to the dashboard. They have no password: an emailed link signs them in.';
comment on column app.users.is_operator is 'Whether the user may open the pages of operators.';

create table app.members (
  organisation_id uuid not null references app.organisations,
  user_id uuid not null references app.users,
  role app.member_role not null,
  created_at timestamptz not null default now(),
  primary key (organisation_id, user_id)
);
create index members_user_id on app.members (user_id);
comment on table app.members is 'Which users belong to an organisation.';
comment on column app.members.role is
  'viewer reads, member also changes things, owner also makes keys, secrets and members.';

create table app.sign_in_links (
  sha256 bytea primary key
    constraint sign_in_links_sha256_length check (length(sha256) = 32),
  user_id uuid not null references app.users,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index sign_in_links_user_id on app.sign_in_links (user_id);
comment on table app.sign_in_links is 'Links that sign in once within 15 minutes. Deleted a day after they expired.';
comment on column app.sign_in_links.sha256 is 'The SHA-256 of the token in the link.';
comment on column app.sign_in_links.used_at is 'When it signed in; null before.';

create table app.sign_in_requests (
  sha256 bytea not null
    constraint sign_in_requests_sha256_length check (length(sha256) = 32),
  requested_at timestamptz not null
);
create index sign_in_requests_sha256 on app.sign_in_requests (sha256, requested_at);
create index sign_in_requests_requested_at on app.sign_in_requests (requested_at);
comment on table app.sign_in_requests is 'Requests for links of the last 15 minutes, which are rate limited by address and by client.';
comment on column app.sign_in_requests.sha256 is 'The SHA-256 of the email address or of the client''s IP address.';

create table app.sessions (
  id uuid primary key,
  sha256 bytea not null
    constraint sessions_sha256_unique unique
    constraint sessions_sha256_length check (length(sha256) = 32),
  user_id uuid not null references app.users,
  client text not null
    constraint sessions_client_length check (length(client) <= 300),
  viewed_organisation_id uuid references app.organisations,
  signed_in_at timestamptz not null,
  seen_at timestamptz not null
) with (fillfactor = 70);
create index sessions_user_id on app.sessions (user_id);
comment on table app.sessions is
  'Signed-in browsers. A session ends 12 hours after its last request, or 30 days after the sign-in.';
comment on column app.sessions.sha256 is 'The SHA-256 of the token in the cookie.';
comment on column app.sessions.client is 'The User-Agent of the browser, at most 300 characters.';
comment on column app.sessions.viewed_organisation_id is
  'The organisation that an operator views as its owner would; null if none.';
comment on column app.sessions.seen_at is 'The last request, to the minute.';

-- Links and invitations are notices to a user.
alter type app.notice_kind add value 'sign_in';
alter type app.notice_kind add value 'invited';
alter table app.notices
  alter column organisation_id drop not null,
  add column email text
    constraint notices_email_length check (length(email) between 3 and 254),
  add constraint notices_have_recipient check (organisation_id is not null or email is not null);
comment on column app.notices.organisation_id is 'null for a link that signs a user in.';
comment on column app.notices.email is 'The user to whom it is sent; null: the owner of the organisation.';
comment on table app.notices is
  'Email from the service to the owners of organisations and to users of the dashboard. Each is sent once.';

-- Owners of organisations that exist already.
insert into app.users (id, email)
select gen_random_uuid(), o.email from (select distinct lower(owner_email) as email from app.organisations) o;
insert into app.members (organisation_id, user_id, role)
select o.id, u.id, 'owner' from app.organisations o join app.users u on u.email = lower(o.owner_email);
