create function api.code_age(sha256 text)
returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case
    when exists (select from app.code c where c.sha256 = code_age.sha256) then 'current'
    when exists (select from app.former_code f where f.sha256 = code_age.sha256) then 'newer'
    else 'older'
  end
$$;

comment on function api.code_age is
  'Returns how the database compares with a version, given by the SHA-256 of its SQL code: current, newer (that version was replaced here) or older (that version was never installed here).';
