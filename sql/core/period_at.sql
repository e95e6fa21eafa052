create function core.period_at(anchor timestamptz, at timestamptz, out period_start timestamptz, out period_end timestamptz)
language plpgsql immutable
as $$
declare
  v_anchor timestamp := anchor at time zone 'UTC';
  v_at timestamp := at at time zone 'UTC';
  -- Always counted from the anchor: counting from the previous period would turn a 31st into a 28th.
  v_months integer := (extract(year from v_at) - extract(year from v_anchor)) * 12
    + extract(month from v_at) - extract(month from v_anchor);
begin
  if v_anchor + make_interval(months => v_months) > v_at then
    v_months := v_months - 1;
  end if;
  period_start := (v_anchor + make_interval(months => v_months)) at time zone 'UTC';
  period_end := (v_anchor + make_interval(months => v_months + 1)) at time zone 'UTC';
end
$$;

comment on function core.period_at is
  'Returns the billing period that contains a time. Periods are months from the anchor''s day, shortened where a month is shorter, in UTC.';
