-- A pause and a suspension are facts of their own: an organisation may have both, and lifting one leaves
-- the other. The state that is shown and relied on follows from them.

alter table app.organisations
  add paused_at timestamptz,
  add pause_reason text
    constraint organisations_pause_reason_length check (length(pause_reason) <= 1000),
  add suspended_at timestamptz,
  add suspension_reason text
    constraint organisations_suspension_reason_length check (length(suspension_reason) <= 1000),
  add activated_at timestamptz;

update app.organisations o
set paused_at = case o.state when 'paused' then o.state_since end,
  pause_reason = case o.state when 'paused' then coalesce(o.state_reason, '') end,
  suspended_at = case o.state when 'suspended' then o.state_since end,
  suspension_reason = case o.state when 'suspended' then coalesce(o.state_reason, '') end,
  activated_at = case o.state when 'active' then o.state_since else o.created_at end;

-- Views read these columns; migrate makes all code again in this transaction.
alter table app.organisations
  drop state cascade,
  drop state_reason cascade,
  drop state_since cascade;

alter table app.organisations
  alter activated_at set not null,
  add constraint organisations_pause_has_reason check ((paused_at is null) = (pause_reason is null)),
  add constraint organisations_suspension_has_reason check ((suspended_at is null) = (suspension_reason is null)),
  add state app.organisation_state not null generated always as (
    case
      when suspended_at is not null then 'suspended'::app.organisation_state
      when paused_at is not null then 'paused'
      else 'active'
    end) stored;
comment on column app.organisations.state is 'A suspension shows before a pause.';
comment on column app.organisations.activated_at is
  'When it was created, or when its last pause or suspension ended.';
