-- The versions of templates, so that a change can be undone.

alter table app.templates
  add column version integer not null default 1
    constraint templates_version_positive check (version > 0),
  add column changed_at timestamptz,
  add column changed_by text
    constraint templates_changed_by_length check (length(changed_by) between 1 and 200);
comment on column app.templates.version is 'The number of its present version, from 1.';
comment on column app.templates.changed_at is
  'When the present version was made; null for one that is older than this column and has its created_at.';
comment on column app.templates.changed_by is 'Who made the present version, as in app.audit.actor; null for one that is older than this column.';

-- The list of an organisation is read by ID, newest first.
drop index app.templates_organisation_id;
create index templates_organisation_id on app.templates (organisation_id, id);

create table app.template_versions (
  template_id uuid not null references app.templates,
  version integer not null
    constraint template_versions_version_positive check (version > 0),
  name text not null
    constraint template_versions_name_length check (length(name) between 1 and 200),
  subject text not null,
  html text,
  text text,
  changed_at timestamptz not null,
  changed_by text
    constraint template_versions_changed_by_length check (length(changed_by) between 1 and 200),
  primary key (template_id, version),
  constraint template_versions_have_a_body check (html is not null or text is not null)
);
comment on table app.template_versions is
  'Versions of templates before the present one, which is in app.templates. The newest 50 of each template are kept.';
comment on column app.template_versions.changed_at is 'When the version was made.';
comment on column app.template_versions.changed_by is 'As in app.templates.';
