create function core.is_claimed_elsewhere(name text, default_claimed_at timestamptz)
returns boolean
language sql stable
as $$
  select exists (
    select from app.name_claims c
    where c.name = is_claimed_elsewhere.name and c.cell <> core.cell_number()
      and (c.verified_at is not null or c.claimed_at > core.now() - interval '72 hours')
      and (c.claimed_at, c.cell) < (
        coalesce((
          select o.claimed_at from app.name_claims o
          where o.name = is_claimed_elsewhere.name and o.cell = core.cell_number()), default_claimed_at),
        core.cell_number()))
$$;

comment on function core.is_claimed_elsewhere is
  'Returns whether another cell holds a domain name, verified or pending for less than 72 hours, by a claim that is earlier than the one of this cell; default_claimed_at counts if this cell has none yet.';
