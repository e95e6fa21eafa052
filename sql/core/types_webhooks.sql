-- Webhook events, deliveries and signing secrets.

create type core.lease as (
  endpoint_id uuid,
  job bigint,
  worker text,
  in_hand uuid[],
  room integer,
  pause_seconds integer
);
comment on type core.lease is
  'Records of api.start_deliveries(leases), api.release_leases(leases). The exclusive right of a job to deliver to an endpoint, as the job asks for it or gives it up.';
comment on column core.lease.worker is 'null when no worker pool has the job';
comment on column core.lease.in_hand is 'absent in api.release_leases; the events that the job is posting';
comment on column core.lease.room is 'absent in api.release_leases; how many more events the job can post now';
comment on column core.lease.pause_seconds is 'absent in api.start_deliveries; the delay of the next job';

create type core.picked_delivery as (
  endpoint_id uuid,
  event_id uuid,
  attempts smallint,
  due_at timestamptz
);
comment on type core.picked_delivery is 'A delivery that api.start_deliveries is about to return.';

create type core.endpoint_results as (
  endpoint_id uuid,
  attempts integer,
  succeeded integer,
  last_error text
);
comment on type core.endpoint_results is 'The new results of a batch at one endpoint, which is enabled.';
comment on column core.endpoint_results.last_error is 'null when the last attempt succeeded; else why it failed';

create type core.held_lease as (
  endpoint_id uuid,
  job bigint
);
comment on type core.held_lease is 'Records of api.finish_leases(leases). The lease that a job has of an endpoint.';

create type core.delivery_result as (
  endpoint_id uuid,
  event_id uuid,
  attempt smallint,
  started_at timestamptz,
  duration_ms integer,
  status smallint,
  error text,
  response text
);
comment on type core.delivery_result is
  'Records of api.finish_deliveries(results), api.finish_leases(results). The result of an attempt to deliver an event.';
comment on column core.delivery_result.status is 'null when there was no response; else the HTTP status';
comment on column core.delivery_result.error is 'null when it succeeded; else why it failed';
comment on column core.delivery_result.response is 'null when there was no response; else the first characters of its body';

create type core.sealed_secret as (
  endpoint_id uuid,
  replaces_sha256 text,
  sealed text
);
comment on type core.sealed_secret is 'Records of api.store_sealed_secrets(secrets). A signing secret, sealed with SECRET_KEY.';
comment on column core.sealed_secret.replaces_sha256 is
  'Hex SHA-256 of the stored text that it replaces. The text itself is not passed, as Postgres may log arguments.';
