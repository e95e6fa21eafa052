-- Messages of the sandbox.

create type core.sandbox_item as (
  id uuid,
  copy smallint,
  kind text,
  reports jsonb,
  due_in_ms integer
);
comment on type core.sandbox_item is
  'Records of api.sandbox_take(messages). A message that the sandbox accepts, and its reports.';
comment on column core.sandbox_item.reports is 'As the function that records them takes them, without their time.';

create type core.sandbox_copy as (
  id uuid,
  copy smallint
);
comment on type core.sandbox_copy is
  'Records of api.sandbox_knows(messages). Names a message or a copy of it, as in app.sandbox_batches.';
