-- What a provider makes for a sending domain.

create type core.dkim_key as (
  selector text,
  state app.dkim_state,
  value text,
  private_key text
);
comment on type core.dkim_key is 'Record of api.finish_rotation(key). A DKIM key of a domain.';
comment on column core.dkim_key.value is 'The TXT value to publish.';
comment on column core.dkim_key.private_key is 'null when the provider keeps it; else sealed with SECRET_KEY';

create type core.identity as (
  provider text,
  dkim_zone text,
  keys core.dkim_key[]
);
comment on type core.identity is
  'Record of api.finish_check(identity), api.finish_domain(identity), api.store_signing_key(identity). What the provider made for a domain.';
