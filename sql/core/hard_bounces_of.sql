create function core.hard_bounces_of(email text)
returns setof app.hard_bounces
language sql stable
as $$
  select b.*
  from app.hard_bounces b
  where b.email = hard_bounces_of.email and b.removed_at is null
    and not exists (
      select from app.hard_bounces n
      where n.email = hard_bounces_of.email
        and (coalesce(n.removed_at, n.created_at), n.cell) > (b.created_at, b.cell))
$$;

comment on function core.hard_bounces_of is
  'Returns the hard bounce, of any cell, for which an address (in lower case) is suppressed for every organisation; no row if it is not.';
