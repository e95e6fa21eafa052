create function core.blocked_numbers_of(phone text)
returns setof app.blocked_numbers
language sql stable
as $$
  select b.*
  from app.blocked_numbers b
  where b.phone = blocked_numbers_of.phone and b.removed_at is null
    and not exists (
      select from app.blocked_numbers n
      where n.phone = blocked_numbers_of.phone
        and (coalesce(n.removed_at, n.created_at), n.cell) > (b.created_at, b.cell))
$$;

comment on function core.blocked_numbers_of is
  'Returns the entry, of any cell, that blocks a number for marketing; no row if the number is not blocked.';
