-- What the api functions answer with; what workers are to hand over is in types_to_send.sql. A comment
-- that starts with null is read by the generator of src/db/api.gen.ts.

create type api.call_response as (
  n integer,
  status smallint,
  code text,
  message text,
  retry_after integer,
  fields jsonb,
  body text,
  is_replayed boolean
);
comment on type api.call_response is 'The response to one call.';
comment on column api.call_response.code is 'null when accepted; else why it is refused';
comment on column api.call_response.message is 'null unless the message of the code says too little; then the message';
comment on column api.call_response.retry_after is 'null unless the call may be repeated after so many seconds';
comment on column api.call_response.fields is 'null unless the refusal names fields';
comment on column api.call_response.body is 'null when refused';

create type api.reply as (
  status smallint,
  body text,
  replayed boolean
);
comment on type api.reply is
  'What to answer to a call that goes alone in its transaction: made anew, or replayed for its idempotency key. Such a function refuses by raising.';
comment on column api.reply.body is 'JSON text.';

create type api.admission as (
  n integer,
  organisation_id uuid,
  mode app.mode,
  scopes text[],
  state app.organisation_state,
  "limit" integer,
  remaining integer,
  retry_after integer,
  refused_for_ms integer
);
comment on type api.admission is 'Who calls and whether the second still has room; no row for an unknown key.';
comment on column api.admission.retry_after is 'null unless over the limit; seconds';
comment on column api.admission.refused_for_ms is 'null unless over the limit; until the second is over';

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
  'A domain about which the provider is to be asked (verdict work, or release: its entry there is to be removed first), or why not: answer, held (by another organisation) or busy.';
comment on column api.domain_work.status is 'null unless this is the answer';
comment on column api.domain_work.body is 'null unless this is the answer';
comment on column api.domain_work.token is 'Its label in the DKIM zone.';
comment on column api.domain_work.dkim_zone is 'null until the provider has made its identity';
comment on column api.domain_work.provider is 'null until the provider has made its identity';
comment on column api.domain_work.keys is 'null until the provider has made its identity; {selector, state, value}';

comment on column api.domain_work.since is 'null unless the call is to be made again (busy, release): to be given then';

create type api.suppression_removal as (
  email text,
  domains text[]
);
comment on type api.suppression_removal is 'An address that the provider is to take off its own lists, and for which domains.';

create type api.received_callbacks as (
  outcomes text[],
  stored text[]
);
comment on type api.received_callbacks is 'What became of callbacks.';
comment on column api.received_callbacks.outcomes is 'In the order of n.';
comment on column api.received_callbacks.stored is 'The types of the receipts that were stored, one for each.';

create type api.signing_key as (
  selector text,
  private_key text
);
comment on type api.signing_key is 'A DKIM key that signs; sealed with SECRET_KEY.';

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
comment on type api.metric is 'What a gauge of the database stands at.';
comment on column api.metric.labels is 'Text by the names of the gauge''s labels.';
