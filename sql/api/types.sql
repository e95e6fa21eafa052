-- Result types of the api functions, apart from core.call_response and core.admission; types_to_send.sql has those for workers. The
-- generator of src/db/api.gen.ts reads comments that start with null.

create type api.reply as (
  status smallint,
  body text,
  replayed boolean
);
comment on type api.reply is
  'The response to a call that runs alone in its transaction: a new one, or one replayed for its idempotency key. A function with this result raises an error to refuse.';
comment on column api.reply.body is 'JSON text.';

create type api.domain_work as (
  verdict text,
  status smallint,
  body text,
  replayed boolean,
  id uuid,
  name text,
  mail_from_label text,
  token text,
  dkim_zone text,
  provider text,
  records jsonb,
  keys jsonb,
  since timestamptz
);
comment on type api.domain_work is
  'A domain for which the service calls the provider (verdict work, or release: first remove its identity there), or the reason not to: answer, held (by another organisation) or busy.';
comment on column api.domain_work.status is 'null unless verdict is answer';
comment on column api.domain_work.body is 'null unless verdict is answer';
comment on column api.domain_work.token is 'The label of the domain in the DKIM zone.';
comment on column api.domain_work.dkim_zone is 'null until the provider has created the identity';
comment on column api.domain_work.provider is 'null until the provider has created the identity';
comment on column api.domain_work.keys is 'null until the provider has created the identity; {selector, state, value}';
comment on column api.domain_work.since is 'null unless the call has to be repeated (busy, release); pass it then';

create type api.suppression_removal as (
  email text,
  domains text[]
);
comment on type api.suppression_removal is
  'An address to remove from the provider''s suppression list, with its domains.';

create type api.received_callbacks as (
  outcomes text[],
  stored text[]
);
comment on type api.received_callbacks is 'The outcomes of callbacks.';
comment on column api.received_callbacks.outcomes is 'In the order of n.';
comment on column api.received_callbacks.stored is 'The type of each receipt that was stored.';

create type api.signing_key as (
  selector text,
  private_key text
);
comment on type api.signing_key is
  'Returns the DKIM key that signs for a verified domain; no row if the service holds none.';

create type api.secret_to_seal as (
  endpoint_id uuid,
  secret text,
  is_sealed boolean
);
comment on type api.secret_to_seal is 'A signing secret of a webhook endpoint that the service seals next.';
comment on column api.secret_to_seal.is_sealed is 'Whether an older SECRET_KEY has sealed it.';

create type api.metric as (
  name text,
  labels jsonb,
  value double precision
);
comment on type api.metric is 'A gauge of the database and its value.';
comment on column api.metric.labels is 'The values of the labels, by name.';
