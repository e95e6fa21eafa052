import type { Sql } from './client.ts'

/** What callers of a function of schema api rely on. Types have the names that a cast uses. */
export type Signature = {
  /** The types of its arguments by name. Calls name the arguments, so their order does not matter. */
  types: Record<string, string>
  /** The arguments without a default. */
  required: readonly string[]
  returns: 'rows' | 'values' | 'value'
  /** The types of the columns of its rows, or of a single column `value`. */
  results: Record<string, string>
}

/** The functions of schema api by name. */
export type Contract = Record<string, Signature>

/** Reads the functions of schema api from the catalogue. */
export async function readContract(sql: Pick<Sql, 'unsafe'>): Promise<Contract> {
  const rows = await sql.unsafe<(Signature & { name: string })[]>(CONTRACT)
  return Object.fromEntries(rows.map(({ name, ...signature }) => [name, signature]))
}

/**
 * Returns a sentence for each change from `before` to `after` that breaks callers of `before`. Further functions,
 * columns and optional arguments do not.
 */
export function breaks(before: Contract, after: Contract): string[] {
  return Object.entries(before).flatMap(([name, old]) => {
    const now = after[name]
    if (!now) return [`api.${name} is gone`]
    return [
      ...lost(old.types, now.types).map((argument) => `api.${name} does not take ${argument}`),
      ...now.required
        .filter((argument) => !old.required.includes(argument))
        .map((argument) => `api.${name} needs ${argument}`),
      ...(old.returns === now.returns
        ? lost(old.results, now.results).map((column) => `api.${name} does not return ${column}`)
        : [`api.${name} returns ${now.returns}, not ${old.returns}`]),
    ]
  })
}

/** Returns the names, with their types, that `now` lacks or has with another type. */
function lost(old: Record<string, string>, now: Record<string, string>): string[] {
  return Object.entries(old)
    .filter(([name, type]) => now[name] !== type)
    .map(([name, type]) => `${name} ${type}`)
}

/** Independent of the search path: names of types are qualified unless they are Postgres's own. */
const CONTRACT = `
  with types as (
    select t.oid, case when e.oid is null then n.base else n.base || '[]' end as name
    from pg_type t
    left join pg_type e on e.oid = t.typelem and t.typcategory = 'A'
    cross join lateral (
      select case when b.typnamespace = 'pg_catalog'::regnamespace then format_type(b.oid, null)
        else format('%I.%I', b.typnamespace::regnamespace, b.typname) end as base
      from pg_type b where b.oid = coalesce(e.oid, t.oid)
    ) n
  )
  select p.proname::text as name,
    (select coalesce(json_object_agg(p.proargnames[a.place], t.name order by a.place), '{}')
      from unnest(p.proargtypes) with ordinality a (oid, place) join types t on t.oid = a.oid) as types,
    array(select p.proargnames[place]
      from generate_series(1, p.pronargs - p.pronargdefaults) place) as required,
    case when r.typtype = 'c' then 'rows' when p.proretset then 'values' else 'value' end as returns,
    case when r.typtype = 'c' then (
        select json_object_agg(a.attname, t.name order by a.attnum)
        from pg_attribute a join types t on t.oid = a.atttypid
        where a.attrelid = r.typrelid and a.attnum > 0 and not a.attisdropped)
      else json_build_object('value', (select t.name from types t where t.oid = r.oid)) end as results
  from pg_proc p
  join pg_type r on r.oid = p.prorettype
  where p.pronamespace = (select n.oid from pg_namespace n where n.nspname = 'api')
  order by p.proname collate "C"`
