// The attacked service: one that is started on its own database, or a running one.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connect, type Sql } from '../../src/db/client.ts'
import { openEmbedded } from '../../src/db/embedded/index.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { npmStart } from '../fixtures/npm-start.ts'
import type { Attack, Attacker } from './attack.ts'

export type Victim = { key: string; domain: string }

export type Target = {
  base: string
  victim: Victim
  attackers: Attacker[]
  /** Starts the measurement. */
  begin(): Promise<void>
  /** Returns the measured effects on the service since `begin`. */
  effects(): Promise<Effects>
  close(): Promise<void>
}

export type Effects = {
  /** Peak resident memory in MB; null if the process is unknown. */
  rss: number | null
  isDead: boolean
  /** Bytes of log lines; null if they cannot be read. */
  logBytes: number | null
  notes: string[]
}

export type Mode = 'live' | 'test'

export type Environment = {
  /** Starts a service with its organisations for one attack. */
  open(attack: Attack | null, mode: Mode, keys: number): Promise<Target>
  close(): Promise<void>
}

const SLOW_PROVIDER_MS = 2000

/** Uses the server of TEST_DATABASE_URL or an embedded one. Each attack gets a copy of a migrated database. */
export async function ownEnvironment(): Promise<Environment> {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-attack-'))
  // So that user postgres can enter the folder when this runs as root.
  await chmod(folder, 0o711)
  const server = process.env.TEST_DATABASE_URL
    ? { url: process.env.TEST_DATABASE_URL, close: async () => undefined }
    : await openEmbedded(folder)
  const admin = connect(server.url, { max: 1 })
  const template = `postgram_attack_${process.pid}`
  await admin.unsafe(`create database ${template}`)
  await migrate(urlOf(server.url, template))
  let made = 0
  return {
    async open(attack, mode, keys) {
      made += 1
      const name = `${template}_${made}`
      await admin.unsafe(`create database ${name} template ${template}`)
      const url = urlOf(server.url, name)
      const sql = connect(url, { max: 1 })
      const [victim] = await createOrganisations(sql, 'victim', 'live', 1)
      const attackers = await createOrganisations(sql, 'attacker', mode, keys)
      for (const one of attackers) {
        one.ids = (await attack?.prepare?.(sql, one.organisation, keys)) ?? []
      }
      // As in a service that has run for long.
      await sql.unsafe('vacuum analyze')
      const slow = attack?.hasSlowProvider ? await slowProvider() : null
      const service = await startService(url, slow?.env ?? {})
      const watch = watchProcess(service.child.pid)
      let logged = 0
      let before = await database(sql)
      return {
        base: service.base,
        victim: victim as Victim,
        attackers,
        async begin() {
          logged = service.logged()
          before = await database(sql)
          slow?.reset()
          await watch.reset()
        },
        async effects() {
          const after = await database(sql)
          const notes = [
            grown('temporary files', after.temporary - before.temporary),
            grown('database', after.size - before.size),
            await waits(sql, victim as Victim),
            slow && `${slow.calls()} calls to the provider`,
          ].filter((note) => note !== null)
          const { child } = service
          return {
            rss: await watch.rss(),
            isDead: child.exitCode !== null || child.signalCode !== null,
            logBytes: service.logged() - logged,
            notes,
          }
        },
        async close() {
          await service.stop()
          slow?.close()
          await sql.end()
          await admin.unsafe(`drop database ${name} with (force)`)
        },
      }
    },
    async close() {
      await admin.unsafe(`drop database ${template} with (force)`)
      await admin.end()
      await server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Uses a running service; skips attacks that need access to its database. */
export function givenEnvironment(options: {
  base: string
  victim: Victim
  attackers: Attacker[]
  pid: number | null
}): Environment {
  const { base, victim, attackers, pid } = options
  return {
    async open(attack, mode, keys) {
      const watch = watchProcess(pid ?? undefined)
      if (attack?.prepare || attack?.hasSlowProvider)
        throw new NotApplicable('needs access to the database of the service')
      const chosen = attackers.filter(({ key }) => key.startsWith(`sk_${mode}_`)).slice(0, keys)
      if (attack && chosen.length < keys) throw new NotApplicable(`needs ${keys} ${mode} keys`)
      return {
        base,
        victim,
        attackers: chosen,
        begin: () => watch.reset(),
        effects: async () => ({
          rss: await watch.rss(),
          isDead: pid !== null && (await watch.rss()) === null,
          logBytes: null,
          notes: [],
        }),
        close: async () => undefined,
      }
    },
    close: async () => undefined,
  }
}

/** An attack cannot run in this environment. */
export class NotApplicable extends Error {}

function urlOf(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

async function createOrganisations(
  sql: Sql,
  name: string,
  mode: Mode,
  count: number,
): Promise<(Attacker & { organisation: string })[]> {
  await sql`
    select ops.create_plan('attack', 'Attack', 0, 2000000000, 2000000000, 1000)
    where not exists (select from app.plans where id = 'attack')`
  const rows = await sql<{ organisation: string; domain: string; key: string }[]>`
    with made as materialized (
      select ${name} || n || '.example' as domain, ops.create_organisation(${name} || n, 'owner@example.com', 'attack') as id
      from generate_series(1, ${count}::integer) n
    )
    select id as organisation, domain, ops.create_api_key(id, ${mode}) as key, ops.verify_domain(id, domain) from made`
  return rows.map(({ organisation, domain, key }) => ({ organisation, domain, key, ids: [] }))
}

/** Starts the service with all its roles, like an operator. */
async function startService(url: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [...npmStart.flags, 'src/main.ts', 'start'], {
    cwd: new URL('../../', import.meta.url),
    env: {
      ...npmStart.env,
      PATH: process.env.PATH,
      DATABASE_URL: url,
      SECRET_KEY: Buffer.alloc(32).toString('base64'),
      PORT: '0',
      PUBLIC_URL: 'https://postgram.test',
      DNS_SERVERS: 'sandbox',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  }) as ChildProcess
  const exit = once(child, 'close')
  let logged = 0
  const last: string[] = []
  const { promise: started, resolve } = Promise.withResolvers<string>()
  for (const output of [child.stdout, child.stderr]) {
    if (!output) continue
    createInterface({ input: output }).on('line', (line) => {
      logged += Buffer.byteLength(line) + 1
      last.push(line)
      if (last.length > 20) last.shift()
      if (line.includes('"msg":"started"')) resolve(JSON.parse(line).address)
    })
  }
  const base = await Promise.race([started, exit.then(() => null)])
  if (base === null) throw new Error(`the service did not start:\n${last.join('\n')}`)
  return {
    child,
    base,
    logged: () => logged,
    async stop() {
      // A graceful stop could take long after an attack.
      child.kill('SIGKILL')
      await exit
    },
  }
}

/** Measures the peak memory of a process, which the kernel resets on demand. */
function watchProcess(pid: number | undefined) {
  return {
    async reset() {
      if (pid) await writeFile(`/proc/${pid}/clear_refs`, '5').catch(() => undefined)
    },
    async rss(): Promise<number | null> {
      if (!pid) return null
      const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
      const [, kilobytes] = /VmHWM:\s+(\d+)/.exec(status) ?? []
      return kilobytes ? Math.round(Number(kilobytes) / 1024) : null
    },
  }
}

async function database(sql: Sql) {
  const [row] = await sql<{ size: number; temporary: number }[]>`
    select pg_database_size(current_database())::float as size, temp_bytes::float as temporary
    from pg_stat_database where datname = current_database()`
  return row ?? { size: 0, temporary: 0 }
}

function grown(what: string, bytes: number): string | null {
  return bytes < 10e6 ? null : `${what} +${Math.round(bytes / 1e6)} MB`
}

/** Returns how long the victim's emails waited until they were sent. */
async function waits(sql: Sql, victim: Victim): Promise<string> {
  const [row] = await sql<{ p50: number | null; waiting: number }[]>`
    select percentile_cont(0.5) within group (order by extract(epoch from sent_at - created_at) * 1000)::float as p50,
      count(*) filter (where sent_at is null)::integer as waiting
    from app.messages where from_address = ${`hello@${victim.domain}`}`
  const sent = row?.p50 == null ? 'none sent' : `sent after ${Math.round(row.p50)} ms`
  return row?.waiting ? `${sent}, ${row.waiting} still queued` : sent
}

/** Starts a stub of Mailgun's API that responds after 2 s. */
async function slowProvider() {
  let calls = 0
  const server = createServer((request, response) => {
    calls += 1
    request.resume()
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"message":"done","domain":{"state":"active"},"items":[]}')
    }, SLOW_PROVIDER_MS)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    env: {
      EMAIL_PROVIDER: 'mailgun',
      MAILGUN_API_KEY: 'key-attack',
      MAILGUN_API_BASE: `http://127.0.0.1:${port}`,
      MAILGUN_WEBHOOK_SIGNING_KEY: 'signing-key',
      DKIM_ZONE: 'dkim.example',
      SYSTEM_FROM: 'Postgram <postgram@postgram.example>',
    },
    calls: () => calls,
    reset() {
      calls = 0
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
