create table app.stray_receipts (
  day date not null,
  provider text not null
    constraint stray_receipts_provider_length check (length(provider) between 1 and 100),
  receipts bigint not null,
  last_message_id uuid not null,
  last_at timestamptz not null,
  primary key (day, provider)
);
comment on table app.stray_receipts is
  'Receipts that were ignored because they name a recipient that their message was not sent to: how many in each UTC day. The recipients are not kept.';
