-- Run once by compose's Postgres, as its superuser, when its volume is empty: the owner of the database,
-- who is no superuser. "migrate" makes the service's own login.
\getenv password POSTGRES_PASSWORD
create role postgram_owner login createrole password :'password';
create database postgram owner postgram_owner;
-- For limits on temporary files, which migrate hands on to the service.
grant set on parameter temp_file_limit to postgram_owner with grant option;
-- From here on a superuser comes from this machine only: docker compose exec db psql -U postgres
alter role postgres password null;
