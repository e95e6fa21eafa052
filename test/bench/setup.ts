import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { connect, type Sql } from '../../src/db/client.ts'
import { openEmbedded } from '../../src/db/embedded/index.ts'
import { migrate } from '../../src/db/migrate/index.ts'

const run = promisify(execFile)

/** A hundred requests per second each: enough organisations not to be what is measured. */
const ORGANISATIONS = 400

/** Bodies as they are in life: some HTML, some text. */
const HTML = `<p>${'Hello there, this is a line of text. '.repeat(20)}</p>`
const TEXT = 'Hello there, this is a line of text. '.repeat(8)

export type Channel = 'emails' | 'sms'

export type Bench = {
  url: string
  sql: Sql
  /** Whose requests the load is made of, by channel. */
  senders: Record<Channel, { key: string; body: string }[]>
  /** A database beside it for pgbench. */
  pgbenchUrl: string
  close(): Promise<void>
}

/** A server with its safe settings, a migrated database and organisations that may send. `cell`: see openServer(). */
export async function setUp(cell?: number): Promise<Bench> {
  const server = await openServer(cell !== undefined)
  const admin = connect(server.url, { max: 1 })
  const names = { main: 'postgram_bench', pgbench: 'postgram_bench_p' }
  for (const name of Object.values(names)) {
    await admin.unsafe(`drop database if exists ${name} with (force)`)
    await admin.unsafe(`create database ${name}`)
  }
  const urlOf = (name: string) => Object.assign(new URL(server.url), { pathname: `/${name}` }).href
  const url = urlOf(names.main)
  await migrate(url)
  const sql = connect(url, { max: 2 })
  if (cell !== undefined && cell > 1) await sql`select ops.set_cell(${cell}, 'bench')`
  return {
    url,
    sql,
    senders: await createSenders(sql),
    pgbenchUrl: urlOf(names.pgbench),
    async close() {
      await sql.end()
      for (const name of Object.values(names)) {
        await admin.unsafe(`drop database ${name} with (force)`)
      }
      await admin.end()
      await server.close()
    },
  }
}

/** The server of DATABASE_URL, or an embedded one that is gone after its close(). For a cell it is always embedded. */
export async function openServer(isCell = false): Promise<{ url: string; close(): Promise<void> }> {
  if (process.env.DATABASE_URL && !isCell) {
    return { url: process.env.DATABASE_URL, close: async () => undefined }
  }
  const folder = await mkdtemp(join(tmpdir(), 'postgram-bench-'))
  // As root its data would lie elsewhere, and stay there, if user postgres could not enter.
  await chmod(folder, 0o711)
  // Cells share their lists by logical replication.
  const server = await openEmbedded(folder, {
    postgresFlags: isCell ? ['-c', 'wal_level=logical'] : [],
  })
  return {
    url: server.url,
    async close() {
      await server.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function createSenders(sql: Sql): Promise<Bench['senders']> {
  await sql`select ops.create_plan('bench', 'Bench', 0, 2000000000, 2000000000, 0)`
  const rows = await sql<{ key: string; domain: string }[]>`
    with made as materialized (
      select ops.create_organisation('Bench ' || n, 'owner@example.com', 'bench') as id
      from generate_series(1, ${ORGANISATIONS}::integer) n
    ), sending as materialized (
      select id, replace(id, '_', '-') || '.example' as domain from made
    )
    select domain, ops.create_api_key(id) as key, ops.verify_domain(id, domain) from sending`
  return {
    emails: rows.map(({ key, domain }) => ({ key, body: JSON.stringify(anEmail(domain)) })),
    sms: rows.map(({ key }) => ({ key, body: JSON.stringify(anSms()) })),
  }
}

/** An email from a domain to the sandbox. */
export function anEmail(domain: string) {
  return {
    from: `Bench <hello@${domain}>`,
    to: 'delivered@sandbox.postgram.test',
    subject: 'A benchmark',
    html: HTML,
    text: TEXT,
    tags: ['bench'],
  }
}

/** An SMS of one segment to a number that the sandbox delivers to. */
export function anSms() {
  return {
    to: '+447700900000',
    body: 'Your code is 493817. It is good for ten minutes; nobody of us will ask you for it.',
    class: 'transactional',
    tags: ['bench'],
  }
}

/** Returns the TPC-B transactions per second of this server, or null if pgbench is not installed. */
export async function measureP(url: string, seconds: number): Promise<number | null> {
  const pgbench = await findPgbench()
  if (!pgbench) return null
  await run(pgbench, ['-i', '-s', '20', '-q', url])
  const { stdout } = await run(pgbench, [
    ...['-M', 'prepared', '-c', '16', '-j', '2', '-T', String(seconds)],
    url,
  ])
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1])
}

async function findPgbench(): Promise<string | null> {
  const { stdout } = await run('sh', [
    '-c',
    'command -v pgbench || ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null | tail -1; true',
  ])
  return stdout.trim() || null
}
