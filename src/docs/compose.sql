-- Compose's Postgres runs this once, as its superuser, when its volume is empty. It creates the owner of the
-- database, who is not a superuser. "migrate" creates the service's own login.
\getenv password POSTGRES_PASSWORD
create role postgram_owner login createrole password :'password';
create database postgram owner postgram_owner;
-- Lets migrate give the service the right to limit temporary files.
grant set on parameter temp_file_limit to postgram_owner with grant option;
-- From now on a superuser can log in only from this machine: docker compose exec db psql -U postgres
alter role postgres password null;
