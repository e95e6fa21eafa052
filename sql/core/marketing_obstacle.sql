create function core.marketing_obstacle(
  organisation_id uuid, phone text, body text, at timestamptz, out code text, out reason text
)
language sql stable
as $$
  select null::text, null::text
$$;

comment on function core.marketing_obstacle is
  'Why a marketing SMS must not be sent at a time, as an error code of design section 7 with its words; nulls when it may.';
