create table app.templates (
  id uuid primary key,
  organisation_id uuid not null references app.organisations,
  name text not null
    constraint templates_name_length check (length(name) between 1 and 200),
  subject text not null,
  html text,
  text text,
  created_at timestamptz not null default now(),
  constraint templates_have_a_body check (html is not null or text is not null)
);
create index templates_organisation_id on app.templates (organisation_id);
comment on table app.templates is 'Email subjects and bodies with {{placeholders}}.';
