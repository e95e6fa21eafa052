/** What migrate sets for the server and the database, before the schemas. Each statement may be repeated. */

/**
 * Creates the roles. They belong to the whole server, so the migrate of another database may create them
 * meanwhile. An owner who is no superuser grants them to itself, to take them on and to grant them to people.
 */
const createRoles = `
  do $$
  declare
    -- Since Postgres 16, taking on a role is a right of its own, which the role's creator lacks.
    v_right text := case when current_setting('server_version_num')::integer < 160000 then 'member' else 'set' end;
    v_role text;
  begin
    foreach v_role in array array['postgram_service', 'postgram_operator', 'postgram_report'] loop
      begin
        if not exists (select from pg_roles where rolname = v_role) then
          execute format('create role %I nologin', v_role);
        end if;
      exception when duplicate_object or unique_violation then null;
      end;
      begin
        if not pg_has_role(current_user, v_role, v_right) then
          execute format('grant %I to %I', v_role, current_user);
        end if;
      exception when unique_violation then null;
      end;
    end loop;
  exception when insufficient_privilege then
    raise insufficient_privilege using message = format(
      'the roles of Postgram need a superuser: "alter role %1$I createrole", or where they exist '
      '"grant postgram_service, postgram_operator, postgram_report to %1$I"', current_user);
  end $$`

/**
 * Lets only the owner create temporary objects. Otherwise a statement that runs with other rights could find the
 * temporary type or table of somebody else before ours. A login that does not own the database cannot revoke this;
 * ops.checks reports that.
 */
const revokeTemporary = `
  do $$
  begin
    if has_database_privilege('public', current_database(), 'temporary') then
      execute format('revoke temporary on database %I from public', current_database());
    end if;
  exception when insufficient_privilege then null;
  end $$`

/**
 * Sets what the database has no setting of its own for:
 * - no JIT: statements either reach rows by a key or read many partitions, for each of which JIT compiles its own
 *   expressions; that took ten times as long as running them;
 * - lz4 for large values, if the server has it: for bodies of 10 kB an accept takes a third less CPU than with pglz
 *   (test/bench/README.md). A column with a compression of its own would not restore on a server without lz4.
 * A login that does not own the database cannot set this.
 */
const setDefaults = `
  do $$
  declare
    v_name text;
    v_value text;
  begin
    for v_name, v_value in
      select w.name, w.value
      from (values ('jit', 'off'), ('default_toast_compression', 'lz4')) w (name, value)
      join pg_settings p on p.name = w.name and w.value = any (coalesce(p.enumvals, array[w.value]))
      where not exists (
        select from pg_db_role_setting s
        join pg_database d on d.oid = s.setdatabase
        cross join unnest(s.setconfig) c (entry)
        where d.datname = current_database() and s.setrole = 0 and starts_with(c.entry, w.name || '='))
    loop
      execute format('alter database %I set %I = %L', current_database(), v_name, v_value);
    end loop;
  exception when insufficient_privilege then null;
  end $$`

/**
 * Lets the service limit the temporary files of its statements (src/db/pools.ts). Only a superuser can grant this;
 * where the owner is none, ops.checks reports that the limit is missing.
 */
const grantTempFileLimit = `
  do $$
  begin
    if not has_parameter_privilege('postgram_service', 'temp_file_limit', 'set') then
      grant set on parameter temp_file_limit to postgram_service;
    end if;
  -- The last two: another migrate on this server grants it at the same moment.
  exception when insufficient_privilege or unique_violation or internal_error then null;
  end $$`

/** In the order in which they run. */
export const databaseSettings = [createRoles, revokeTemporary, setDefaults, grantTempFileLimit]
