create function core.update_name_claim(name text)
returns void
language plpgsql volatile
as $$
declare
  v_cell smallint := core.cell_number();
begin
  insert into app.name_claims as c (name, cell, claimed_at, verified_at)
  select d.name, v_cell, core.now(), case d.status when 'verified' then d.verified_at end
  from app.domains d
  where d.name = update_name_claim.name and d.organisation_id is not null and d.status <> 'failed'
  on conflict on constraint name_claims_pkey do update set verified_at = excluded.verified_at
    where c.verified_at is distinct from excluded.verified_at;
  delete from app.name_claims c
  where c.name = update_name_claim.name and c.cell = v_cell
    and not exists (
      select from app.domains d
      where d.name = c.name and d.organisation_id is not null and d.status <> 'failed');
end
$$;

comment on function core.update_name_claim is
  'Make the claim of this cell to a domain name follow app.domains: a pending or verified domain has one. Called after each change of a domain.';
