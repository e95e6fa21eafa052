-- A claim without proof lapses, and what makes us call a provider is bounded for each organisation.

alter table app.domains alter column organisation_id drop not null;
alter table app.domains add constraint domains_released_is_failed
  check (organisation_id is not null or status = 'failed');
alter table app.domains add column check_started_at timestamptz;
comment on column app.domains.organisation_id is
  'null once an operator released the name: the row stays until its entry at the provider is removed.';
comment on column app.domains.check_started_at is
  'When a check began that a caller asked for and that is still in progress; others who ask share its result.';

create table app.domain_claims (
  name text not null
    constraint domain_claims_name_length check (length(name) between 3 and 253),
  organisation_id uuid not null references app.organisations,
  asked_at timestamptz,
  barred_until timestamptz,
  primary key (name, organisation_id),
  constraint domain_claims_say_something check (asked_at is not null or barred_until is not null)
);
create index domain_claims_organisation_id on app.domain_claims (organisation_id);
comment on table app.domain_claims is 'Organisations that contend for a domain name which nobody has proved.';
comment on column app.domain_claims.asked_at is 'When the organisation last asked for the name while another one claimed it.';
comment on column app.domain_claims.barred_until is
  'Until when it cannot claim the name: its last claim ended without proof, and another organisation had asked.';

-- Unlogged: after a crash of the server the calls of the last seconds do not matter.
create unlogged table app.provider_calls (
  organisation_id uuid primary key,
  allowed double precision not null,
  counted_at timestamptz not null
) with (fillfactor = 20);
comment on table app.provider_calls is
  'How many calls about domains each organisation may still make at counted_at (core.limit_provider_calls).';

create table app.suppression_removals (
  organisation_id uuid not null references app.organisations,
  email text not null
    constraint suppression_removals_email_length check (length(email) between 3 and 254),
  tried_at timestamptz,
  primary key (organisation_id, email)
);
comment on table app.suppression_removals is
  'Addresses that the email provider is still to take off its own lists, for each domain of the organisation.';

-- Jobs used to name the address themselves.
insert into app.suppression_removals (organisation_id, email)
select distinct d.organisation_id, j.payload ->> 'email'
from graphile_worker._private_jobs j
join graphile_worker._private_tasks t on t.id = j.task_id and t.identifier = 'remove_suppression'
cross join lateral json_array_elements_text(j.payload -> 'domains') n (name)
join app.domains d on d.name = n.name;
delete from graphile_worker._private_jobs j
using graphile_worker._private_tasks t
where t.id = j.task_id and t.identifier = 'remove_suppression';
select graphile_worker.add_job(
  'remove_suppression', json_build_object('organisation', s.organisation_id),
  job_key := 'remove_suppression:' || s.organisation_id)
from (select distinct f.organisation_id from app.suppression_removals f) s;
