import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import t from 'tap'
import { createDatabase, rolledBack } from './fixtures/database.ts'

const root = resolve(import.meta.dirname, '..')

/**
 * The import rules (ARCHITECTURE.md#import-rules): a room imports from itself and from lower lines. A room is a
 * folder of src, a file at its root, or tasks.
 */
const layers = [
  ['main'],
  ['cli'],
  ['service', 'config'],
  ['http', 'dashboard', 'worker', 'clock'],
  ['tasks'],
  ['domains', 'marketing', 'notifications'],
  ['providers', 'webhooks', 'schemas'],
  ['db'],
  ['telemetry', 'crypto', 'sms'],
  ['errors', 'net', 'text', 'time'],
  ['package.json'],
]

/** The files that may stand at the root of src; everything else is in a room. */
const rootFiles = ['config.ts', 'errors.ts', 'main.ts', 'service.ts']

/** Files that stand alone however short they are: commands, middlewares, routers, settings and tasks. */
const standsAlone =
  /^(tasks|src\/cli|src\/http|src\/http\/routes)\/[\w-]+\.ts$|\/(settings|index)\.ts$|\.d\.ts$/
const SHORT_LINES = 20

/**
 * Words that the glossary (ARCHITECTURE.md#glossary) replaces, as parts of an identifier: `hand over` is found in
 * handOver, hand_over and handOverTask.
 */
const replacedWords = [
  ...['hand over', 'handed over', 'handover', 'handovers', 'departure', 'departures', 'news'],
  ...['turn', 'turns', 'pace', 'presence', 'announce', 'announced', 'announcer', 'announcement'],
  ...['beat', 'beats', 'tick', 'ticks', 'made up', 'rehearsal', 'rehearsals', 'vouched', 'beneath'],
  ...['cure', 'cures', 'examine', 'books', 'is right', 'unnamed', 'bar'],
  ...['give up', 'given up', 'gave up', 'put off', 'passed over', 'anew', 'seldom'],
]

/** Only these ask the database other than through call(): as its owner, before or beside the service. */
const ownersFiles = /^src\/(db|cli)\/.*\.ts$/

type Import = { from: string; to: string; isTypeOnly: boolean }

type Source = { file: string; text: string }

async function filesBelow(folder: string, ending: string): Promise<string[]> {
  const names = await readdir(join(root, folder), { recursive: true })
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name))
    .sort()
}

function sourcesOf(files: string[]): Promise<Source[]> {
  return Promise.all(
    files.map(async (file) => ({ file, text: await readFile(join(root, file), 'utf8') })),
  )
}

function importsOf({ file, text }: Source): Import[] {
  const statements = text.matchAll(
    /^(?:import|export)\s+(type\s)?([^'"]*?)(?:from\s+)?'([^']+)'|\bimport\(\s*'([^']+)'/gm,
  )
  return [...statements].flatMap(([, type, names = '', path, dynamic]) => {
    const target = path ?? dynamic ?? ''
    const listed = /^\{([^}]*)\}\s*$/
      .exec(names)?.[1]
      ?.split(',')
      .map((name) => name.trim())
    const isTypeOnly =
      type !== undefined ||
      (listed?.every((name) => name === '' || name.startsWith('type ')) ?? false)
    if (!target.startsWith('.')) return []
    return [{ from: file, to: relative(root, resolve(root, dirname(file), target)), isTypeOnly }]
  })
}

/** A file and all files that it imports, directly or through others. */
function reachedFrom(file: string, imports: Import[]): string[] {
  const reached = new Set([file])
  for (const importer of reached) {
    for (const { from, to } of imports) if (from === importer) reached.add(to)
  }
  return [...reached]
}

function roomOf(file: string): string {
  const [top = '', second = ''] = file.split('/')
  return top === 'src' ? second.replace(/\.[jt]s$/, '') : top
}

/** SQL without its comments and quoted strings, in which hints name views that are not read. */
function codeOf(text: string): string {
  return text.replaceAll(/'(?:[^']|'')*'|--.*$/gm, (part) => (part.startsWith("'") ? "''" : ''))
}

const sources = await sourcesOf([
  ...(await filesBelow('src', '.ts')),
  ...(await filesBelow('src', '.js')),
  ...(await filesBelow('tasks', '.ts')),
])
const testSources = await sourcesOf(await filesBelow('test', '.ts'))
const imports = sources.flatMap(importsOf)

const sqlFiles = await Promise.all(
  (await filesBelow('sql', '.sql')).map(async (file) => {
    // A function that has the name of a view is in a file of its own: help_function.sql.
    const [, schema = '', name = ''] = /^sql\/(\w+)\/(\w+?)(?:_function)?\.sql$/.exec(file) ?? []
    return { file, schema, name, text: await readFile(join(root, file), 'utf8') }
  }),
)
const objects = sqlFiles.filter(
  ({ schema, name }) => /^(core|api|ops)$/.test(schema) && !/^(types(_\w+)?|grants)$/.test(name),
)
const codeByFile = new Map(sqlFiles.map(({ file, text }) => [file, codeOf(text)]))

/** The words of each identifier in a code, in lower case: `handOver` and `hand_over` are "hand over". */
function identifiersOf(code: string): Set<string> {
  const words = (name: string) => name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/_+/g, ' ')
  return new Set(
    [...code.matchAll(/(?<!process\.)\b[A-Za-z_]\w*/g)].map(([name]) => words(name).toLowerCase()),
  )
}

/** TypeScript without its comments and strings. */
function withoutTexts(text: string): string {
  const ignored =
    /\/\*[\s\S]*?\*\/|\/\/.*$|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gm
  return text.replace(ignored, ' ')
}

/** The lines of a text that have comments. In SQL each line counts: `comment on` has strings. */
function commentsOf(file: string, text: string): string {
  if (file.endsWith('.sql')) return text
  return text
    .split('\n')
    .filter((line) => /^\s*(\/?\*|\/\/)|\s\/\/\s|\s\/\*\*?\s/.test(line))
    .join('\n')
}

/** The anchor of a Markdown heading, as GitHub makes it. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

const mentioning = (pattern: RegExp, files = objects) =>
  files.filter(({ file }) => pattern.test(codeByFile.get(file) ?? '')).map(({ file }) => file)

t.test('imports are found in all their forms', async (t) => {
  const text = [
    "import a from './a.ts'",
    "import { b } from '../b.ts'",
    "import type { c } from './c.ts'",
    "import { type d, type e } from './d.ts'",
    "import {\n  type f,\n  g,\n} from './f.ts'",
    "import './h.ts'",
    "export * from './i.ts'",
    "const j = await import('./j.ts')",
    "import k from 'koa'",
  ].join('\n')
  t.same(
    importsOf({ file: 'src/http/x.ts', text }).map(({ to, isTypeOnly }) => [to, isTypeOnly]),
    [
      ['src/http/a.ts', false],
      ['src/b.ts', false],
      ['src/http/c.ts', true],
      ['src/http/d.ts', true],
      ['src/http/f.ts', false],
      ['src/http/h.ts', false],
      ['src/http/i.ts', false],
      ['src/http/j.ts', false],
    ],
  )
  t.ok(imports.length > 50)
})

t.test('src: has rooms, and at most main, service, config and errors at its root', async (t) => {
  const entries = await readdir(join(root, 'src'), { withFileTypes: true })
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
  t.same(
    files.filter((name) => !rootFiles.includes(name)),
    [],
  )
})

t.test('imports: every room has a layer, and imports from lower layers only', async (t) => {
  const layerOf = (file: string) => layers.findIndex((layer) => layer.includes(roomOf(file)))
  t.same(
    sources.filter(({ file }) => layerOf(file) === -1).map(({ file }) => file),
    [],
  )
  const upward = imports.filter(
    ({ from, to }) => roomOf(from) !== roomOf(to) && layerOf(to) <= layerOf(from),
  )
  t.same(upward, [])
})

t.test('config: only main calls it; other files import its types at most', async (t) => {
  const readers = imports.filter(
    ({ from, to, isTypeOnly }) =>
      roomOf(to) === 'config' && roomOf(from) !== 'config' && !isTypeOnly,
  )
  t.same([...new Set(readers.map(({ from }) => from))], ['src/main.ts'])
})

t.test('config: imports nothing from providers but their settings', async (t) => {
  const others = imports.filter(
    ({ from, to, isTypeOnly }) =>
      roomOf(from) === 'config' &&
      roomOf(to) === 'providers' &&
      !isTypeOnly &&
      !to.endsWith('/settings.ts'),
  )
  t.same(others, [])
})

t.test('a file under 20 lines that one file imports is part of that file', async (t) => {
  const importersOf = (file: string) =>
    new Set(imports.filter(({ to }) => to === file).map(({ from }) => from))
  const tooShort = sources.filter(
    ({ file, text }) =>
      !standsAlone.test(file) &&
      text.split('\n').length <= SHORT_LINES &&
      importersOf(file).size === 1,
  )
  t.same(
    tooShort.map(({ file }) => file),
    [],
  )
})

t.test('identifiers: use the words of the glossary', async (t) => {
  const code = [
    ...sources.map(({ file, text }) => ({ file, code: withoutTexts(text) })),
    ...sqlFiles.map(({ file }) => ({ file, code: codeByFile.get(file) ?? '' })),
  ]
  const found = code.flatMap(({ file, code }) => {
    const identifiers = [...identifiersOf(code)].map((words) => ` ${words} `)
    return replacedWords
      .filter((word) => identifiers.some((words) => words.includes(` ${word} `)))
      .map((word) => `${file}: ${word}`)
  })
  t.same(found, [])
})

t.test('pointers: every document and heading that a file names is in the repository', async (t) => {
  const texts = [
    ...sources,
    ...sqlFiles,
    ...testSources.filter(({ file }) => file !== 'test/layout.test.ts'),
  ]
  const outside =
    /\b(interface (section )?\d|interface sections?\b|design sections?\b|promises? \d)/i
  t.same(
    texts.filter(({ text }) => outside.test(text)).map(({ file }) => file),
    [],
    'the plans of the project are not in the repository',
  )
  const named = texts.flatMap(({ file, text }) =>
    [...commentsOf(file, text).matchAll(/\b((?:src\/docs\/)?[\w-]+\.md)(?:#([\w-]+))?/g)].map(
      ([, path = '', slug]) => ({ file, path, slug }),
    ),
  )
  for (const { file, path, slug } of named) {
    // src/http/docs names its pages without their folder.
    const below = file.startsWith('src/http/docs/') && !path.includes('/') ? 'src/docs' : ''
    const page = await readFile(join(root, below, path), 'utf8').catch(() => null)
    if (page === null) {
      t.fail(`${file} names ${path}, which does not exist`)
      continue
    }
    const slugs = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => slugOf(heading))
    if (slug !== undefined) t.ok(slugs.includes(slug), `${file}: ${path}#${slug}`)
  }
})

t.test('process.env: only main reads it', async (t) => {
  const readers = sources.filter(({ text }) => /process\.env\b/.test(text)).map(({ file }) => file)
  // The embedded server's PATH is not configuration.
  t.same(readers, ['src/db/run.ts', 'src/main.ts'])
})

t.test('http never imports tasks', async (t) => {
  const reached = reachedFrom('src/http/app.ts', imports)
  t.ok(reached.length > 10)
  t.same(
    reached.filter((file) => file.startsWith('tasks/')),
    [],
  )
})

// tap enables async hooks, which run for each promise: a program that measures speed would measure them.
t.test('bench and attack: no file imports tap, directly or through others', async (t) => {
  const withTap = testSources
    .filter(({ text }) => /^import (?!type\b)[^']*'tap'/m.test(text))
    .map(({ file }) => file)
  t.ok(withTap.includes('test/fixtures/database.ts'))
  const programs = testSources.filter(({ file }) => /^test\/(bench|attack)\//.test(file))
  t.ok(programs.length > 20)
  const allImports = [...imports, ...testSources.flatMap(importsOf)]
  const found = programs.flatMap(({ file }) =>
    reachedFrom(file, allImports)
      .filter((reached) => withTap.includes(reached))
      .map((reached) => `${file} imports ${reached}`),
  )
  t.same(found, [])
})

t.test(
  'src: webhooks/verify.js is the only JavaScript beside scripts of browsers, and imports only node:crypto',
  async (t) => {
    const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
    const exported = Object.values<{ types: string; default: string }>(exports)
    t.same(
      exported.map((paths) => relative(root, resolve(root, paths.default))),
      sources
        .map(({ file }) => file)
        .filter((file) => file.endsWith('.js') && !file.startsWith('src/dashboard/assets/')),
    )
    for (const { types, default: code } of exported) {
      const imported = async (file: string) => {
        const text = await readFile(join(root, file), 'utf8')
        const names = text.matchAll(/\b(?:from|import|import\(|require\()\s*'([^']+)'/g)
        return new Set([...names].map(([, name]) => name))
      }
      // Its own types are named in comments.
      t.same(await imported(code), new Set(['node:crypto', `./${basename(types)}`]), code)
      t.same(await imported(types), new Set(), types)
    }
  },
)

t.test('imports: no file imports itself through other files', async (t) => {
  const cycles: string[][] = []
  const finished = new Set<string>()
  const follow = (file: string, path: string[]) => {
    if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file])
    if (finished.has(file) || path.includes(file)) return
    for (const { from, to } of imports) if (from === file) follow(to, [...path, file])
    finished.add(file)
  }
  for (const { file } of sources) follow(file, [])
  t.same(cycles, [])
})

t.test('queries are built in src/db only, by the service through call() only', async (t) => {
  const builders = sources.filter(
    ({ file, text }) => !ownersFiles.test(file) && /\b(sql|tx)(<[^`]*>)?`|\.unsafe\(/.test(text),
  )
  t.same(
    builders.map(({ file }) => file),
    [],
  )
})

t.test(
  'every file of core, api and ops holds one object of its own name, with a comment',
  async (t) => {
    t.ok(objects.length > 60)
    for (const { file, schema, name, text } of objects) {
      const code = codeByFile.get(file) ?? ''
      const made = [...code.matchAll(/^create\s+(?:or\s+replace\s+)?(\w+)\s+([\w.]+)/gim)]
      t.same(
        made.map(([, , object]) => object),
        [`${schema}.${name}`],
        `${file} makes its object only`,
      )
      t.match(
        made[0]?.[1],
        schema === 'ops' ? /^(function|view|table)$/ : /^(function|aggregate)$/,
        file,
      )
      // Those of its columns are a matter of test/ops/views.test.ts.
      const ofColumns = new RegExp(`^comment on column ${schema}\\.${name}\\..*\\n`, 'gm')
      const comments = [...text.replaceAll(ofColumns, '').matchAll(/^comment on (\w+) ([\w.]+)/gm)]
      t.same(
        comments.map(([, kind, object]) => [kind, object]),
        [[made[0]?.[1], `${schema}.${name}`]],
        `${file} has a comment on its object`,
      )
    }
  },
)

t.test('functions state their volatility', async (t) => {
  t.same(
    objects
      .filter(({ text }) => /^create function/m.test(text))
      .filter(({ text }) => !/^language (sql|plpgsql) (immutable|stable|volatile)\b/m.test(text))
      .map(({ file }) => file),
    [],
  )
})

t.test('nothing but files of types makes types, and nothing but grants.sql grants', async (t) => {
  const files = sqlFiles.filter(({ schema }) => schema !== 'migrations')
  t.same(
    mentioning(/^create type\b/m, files).filter((file) => !/\/types(_\w+)?\.sql$/.test(file)),
    [],
  )
  t.same(
    mentioning(/^(grant|revoke)\b/m, files).filter((file) => !file.endsWith('/grants.sql')),
    [],
  )
})

t.test('api and ops call core, core calls neither, and they do not call each other', async (t) => {
  const inSchema = (schema: string) => objects.filter((object) => object.schema === schema)
  const callingOthers = (schema: string, call: RegExp) =>
    inSchema(schema)
      .filter(({ file, name }) =>
        [...(codeByFile.get(file) ?? '').matchAll(call)].some(([, called]) => called !== name),
      )
      .map(({ file }) => file)
  // ops.staged_numbers is a table that operators fill.
  t.same(mentioning(/\b(api|ops)\.(?!staged_numbers\b)\w/, inSchema('core')), [])
  // A page's action is what an operator does in psql.
  const ofPages = inSchema('api').filter(({ name }) => name.startsWith('dashboard_'))
  const others = inSchema('api').filter((object) => !ofPages.includes(object))
  t.same(mentioning(/\bops\.\w/, others), [])
  const checked = mentioning(/\bcore\.(member_of|operator_of|session_of|role_of)\(/, ofPages)
  t.same(
    checked,
    ofPages.map(({ file }) => file),
    'each checks the person',
  )
  t.same(mentioning(/\bapi\.\w/, inSchema('ops')), [])
  // An api function may name the types of its schema.
  t.same(callingOthers('api', /\bapi\.(\w+)\s*\(/g), [])
  t.same(callingOthers('ops', /\bops\.(?!staged_numbers\b)(\w+)/g), [])
})

t.test('migrations name no code', async (t) => {
  const migrations = sqlFiles.filter(({ schema }) => schema === 'migrations')
  t.ok(migrations.length >= 4)
  t.same(mentioning(/\b(core|api|ops)\.\w/, migrations), [])
})

const { sql } = await createDatabase()

/** Objects outside of core, api and ops that the drop of these three would take along. */
const dependents = `
  with code as (
    select 'pg_proc'::regclass as classid, oid from pg_proc
    where pronamespace in ('core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)
    union all
    select 'pg_class'::regclass, oid from pg_class
    where relnamespace in ('core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)
    union all
    select 'pg_type'::regclass, oid from pg_type
    where typnamespace in ('core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)
  )
  select pg_describe_object(d.classid, d.objid, d.objsubid) as dependent
  from pg_depend d
  join code c on c.classid = d.refclassid and c.oid = d.refobjid
  cross join pg_identify_object_as_address(d.classid, d.objid, 0) a
  where split_part(a.object_names[1], '.', 1) not in ('core', 'api', 'ops')
  order by 1`

t.test('nothing that holds data depends on code', async (t) => {
  t.same(await sql.unsafe(dependents), [])
})

t.test('a default, a check, an index or a policy that called code would be found', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`
      create table app.careless (
        made_at timestamptz default core.now(),
        name text check (core.pool_lock(name) <> 0)
      )`
    await tx`create index careless_names on app.careless (core.pool_lock(name))`
    await tx`create policy careless_policy on app.careless using (core.has_process(name))`
    const found = await tx.unsafe(dependents)
    t.equal(found.length, 4)
    for (const { dependent } of found) t.match(dependent, /careless/)
  })
})

t.test('there are no triggers and no rules besides those of the views', async (t) => {
  const triggers = await sql`
    select t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal
      and c.relnamespace in ('app'::regnamespace, 'core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)`
  t.same(triggers, [])
  const rules = await sql`
    select r.rulename from pg_rewrite r join pg_class c on c.oid = r.ev_class
    where r.rulename <> '_RETURN'
      and c.relnamespace in ('app'::regnamespace, 'ops'::regnamespace)`
  t.same(rules, [])
  t.same(await sql`select evtname from pg_event_trigger`, [])
})

t.test('schema app holds data: no functions and no views', async (t) => {
  t.same(await sql`select proname from pg_proc where pronamespace = 'app'::regnamespace`, [])
  t.same(
    await sql`
      select relname from pg_class
      where relnamespace = 'app'::regnamespace and relkind in ('v', 'm', 'f')`,
    [],
  )
})

t.test('views live in ops only and read no other view', async (t) => {
  const views = await sql`
    select c.relnamespace::regnamespace::text as schema from pg_class c
    where c.relkind in ('v', 'm') and c.relnamespace::regnamespace::text in ('app', 'core', 'api', 'ops')
    group by 1`
  t.same(views, [{ schema: 'ops' }])
  const readers = await sql`
    select distinct r.ev_class::regclass::text as reader, d.refobjid::regclass::text as read
    from pg_rewrite r
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
      and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.ev_class
    join pg_class c on c.oid = d.refobjid
    where r.ev_class::regclass::text like 'ops.%'
      and c.relkind in ('v', 'm') and c.relnamespace::regnamespace::text in ('app', 'core', 'api', 'ops')`
  t.same(readers, [])
})

t.test('no function reads a view, except those of the dashboard', async (t) => {
  const views = await sql<{ name: string }[]>`
    select relname::text as name from pg_class where relnamespace = 'ops'::regnamespace and relkind = 'v'`
  t.ok(views.length >= 10)
  // Pages of operators show what operators read in psql.
  const functions = objects.filter(
    ({ file, text }) =>
      /^create (function|aggregate)/m.test(text) && !file.startsWith('sql/api/dashboard_'),
  )
  for (const { name } of views)
    t.same(mentioning(new RegExp(`\\bops\\.${name}\\b(?!\\()`), functions), [])
})

t.test('every table of app and every object of core, api and ops has a comment', async (t) => {
  const silent = await sql`
    select c.oid::regclass::text as name
    from pg_class c
    where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and obj_description(c.oid, 'pg_class') is null
    union all
    select c.oid::regclass::text
    from pg_class c
    where c.relnamespace in ('api'::regnamespace, 'ops'::regnamespace) and c.relkind in ('v', 'r', 'c')
      and obj_description(c.oid, 'pg_class') is null
      and obj_description(c.reltype, 'pg_type') is null
    union all
    select p.oid::regprocedure::text
    from pg_proc p
    where p.pronamespace in ('core'::regnamespace, 'api'::regnamespace, 'ops'::regnamespace)
      and obj_description(p.oid, 'pg_proc') is null
    union all
    select n.nspname from pg_namespace n
    where n.nspname in ('app', 'core', 'api', 'ops') and obj_description(n.oid, 'pg_namespace') is null`
  t.same(silent, [])
})

t.test('the database has the objects of the files and no others', async (t) => {
  const found = await sql<{ name: string }[]>`
    select n.nspname || '.' || p.proname as name
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('core', 'api', 'ops')
    union all
    select n.nspname || '.' || c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('core', 'api', 'ops') and c.relkind <> 'c'
    order by 1`
  t.same(
    found.map(({ name }) => name).sort(),
    objects.map(({ schema, name }) => `${schema}.${name}`).sort(),
  )
})

t.test('check constraints of app have chosen names, not generated ones', async (t) => {
  const generated = await sql`
    select conrelid::regclass::text as table, conname as name
    from pg_constraint c
    where c.connamespace = 'app'::regnamespace and c.contype = 'c' and c.conname ~ '_check\\d*$'
      and not exists (select from pg_class p where p.oid = c.conrelid and p.relispartition)
      and c.conrelid::regclass::text <> 'app.code'`
  t.same(generated, [])
})
