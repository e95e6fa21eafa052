import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { connect, pgOptions } from '../../src/db/client.ts'
import { connectionProblem } from '../../src/db/connection-problem.ts'
import { findHost } from '../../src/db/hosts.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { createDatabase, serviceUrl } from '../fixtures/database.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { freePort, startTcpServer } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import {
  initialise,
  noPostgres,
  runPostgres,
  serverFolder,
  startDatabaseProxy,
  startServer,
} from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { HELD_MS, holdLimits, until } from '../fixtures/time.ts'

t.test(
  'address with a primary, its standby and a host that never responds',
  { skip: noPostgres },
  async (t) => {
    const folder = await serverFolder()
    const [data, copy] = [join(folder, 'primary'), join(folder, 'standby')]
    await initialise(data)
    const primary = await startServer(data, ['fsync = off'])
    const superuser = primary.urlOf('postgres', 'postgres')
    await runPostgres('pg_basebackup', '-d', superuser, '-D', copy, '-R', '-c', 'fast', '--no-sync')
    const standby = await startServer(copy)
    const silent = await startTcpServer(() => undefined)
    const hostOf = (url: string) => new URL(url).host
    const hosts = [
      `127.0.0.1:${silent.port}`,
      hostOf(standby.urlOf('', '')),
      hostOf(superuser),
    ].join(',')
    const url = `postgres://postgres@${hosts}/postgram?target_session_attrs=read-write`

    const admin = connect(superuser, { max: 1 })
    await admin.unsafe('create database postgram')
    // The standby then has every acknowledged commit.
    await admin.unsafe("alter system set synchronous_standby_names = '*'")
    await admin.unsafe('select pg_reload_conf()')
    await admin.end()

    /** The port of the server that each driver connects to. */
    async function portsOf(address: string): Promise<unknown[]> {
      const question = 'select inet_server_port() as port'
      const sql = connect(address, { max: 1 })
      const pool = new pg.Pool(pgOptions(address))
      try {
        const [row] = await sql.unsafe(question)
        const { rows } = await pool.query(question)
        return [row?.port, rows[0].port]
      } finally {
        await Promise.all([sql.end(), pool.end()])
      }
    }
    const portOf = (address: string) => Number(new URL(address).port)

    t.test(
      'both drivers connect to the primary, in any order of hosts and for each target',
      async (t) => {
        await migrate(url)
        const expected = [portOf(superuser), portOf(superuser)]
        t.same(await portsOf(url), expected)
        t.same(await portsOf(url.replace('read-write', 'primary')), expected)
        t.same(await portsOf(url.split('?')[0] ?? ''), expected, 'as they do without the parameter')
      },
    )

    t.test('a standby alone is refused with a line that names the setting', async (t) => {
      const alone = standby.urlOf('postgres', 'postgram')
      const problem = async (address: string) => {
        const sql = connect(address, { max: 1 })
        const asked = sql.unsafe('create table x ()').then(
          () => 'no problem',
          (error) => connectionProblem(error),
        )
        return asked.finally(() => sql.end())
      }
      const cure =
        'set the address of the primary, or of all hosts, see /docs/deployment#database-failover'
      t.equal(
        await problem(`${alone}?target_session_attrs=read-write`),
        `the server is a standby: ${cure}`,
      )
      t.equal(
        await problem(alone),
        `the server takes no writes (cannot execute CREATE TABLE in a read-only transaction): ${cure}`,
      )
    })

    t.test('all roles and commands follow a failover without a restart', async (t) => {
      const sql = connect(url, { max: 1 })
      t.teardown(() => sql.end())
      const { liveKey, domain } = await createOrganisation(sql)
      const { base, stop } = await startTestService(url)
      t.teardown(stop)
      const send = async () => {
        const { status, json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
        t.equal(status, 200)
        await until('delivery', async () => {
          const shown = await get(`${base}/v1/emails/${json.id}`, liveKey)
          return shown.json.status === 'delivered'
        })
      }
      await send()

      await primary.stop()
      await runPostgres('pg_ctl', 'promote', '-w', '-D', copy)
      await send()
      const promoted = portOf(standby.urlOf('', ''))
      t.same(await portsOf(url), [promoted, promoted])
      await until('all connections of a service', async () => {
        const rows = await sql<{ name: string; listens: boolean }[]>`
        select application_name as name, bool_or(query ilike 'listen%') as listens
        from pg_stat_activity where usename = 'postgram_app' group by 1 order by 1`
        const names = rows.map(({ name, listens }) => (listens ? `${name}, listening` : name))
        return (
          names.join('; ') ===
          'postgram; postgram clock; postgram heartbeat; postgram worker, listening'
        )
      })

      const env = {
        DATABASE_URL: await serviceUrl(url),
        MIGRATE_DATABASE_URL: url,
        SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
      }
      await migrate(url)
      t.match(await runCommand(['seed'], env), { code: 0, stderr: '' })
      t.match((await runCommand(['doctor'], env)).stdout, /^ok {6}database\nok {6}service login\n/m)
    })
  },
)

t.test('both drivers name all hosts that cannot be reached, without a wait', async (t) => {
  const [one, other] = [await freePort(), await freePort()]
  const url = `postgres://127.0.0.1:${one},127.0.0.1:${other}/x`
  const line =
    `the server cannot be reached: no host takes writes; ` +
    [one, other].map((n) => `127.0.0.1:${n}: connect ECONNREFUSED 127.0.0.1:${n}`).join('; ')
  await t.rejects(findHost(url), { code: 'ECONNREFUSED' })
  const sql = connect(url, { max: 1 })
  const pool = new pg.Pool(pgOptions(url))
  const questions: (() => PromiseLike<unknown>)[] = [
    () => sql.unsafe('select 1'),
    () => pool.query('select 1'),
  ]
  for (const ask of questions) {
    const said = await ask().then(
      () => 'no problem',
      (error) => connectionProblem(error),
    )
    t.equal(said, line)
  }
  await Promise.all([sql.end(), pool.end()])
})

t.test(
  'findHost(): fails in time if a host freezes after login, and searches again next time',
  async (t) => {
    const { url, sql } = await createDatabase()
    const [database] = await sql<{ name: string }[]>`select current_database() as name`
    await sql.unsafe(`alter database ${database?.name} set default_transaction_read_only = on`)
    const frozen = await startDatabaseProxy(url)
    frozen.freezeAt('pg_is_in_recovery')
    const proxy = await startDatabaseProxy(url)
    const [one, other] = [new URL(frozen.url), new URL(proxy.url)]
    const both = proxy.url.replace(other.host, `${one.host},${other.host}`)
    const search = () => findHost(both, HELD_MS)
    const limits = holdLimits(t)
    const failed = t.rejects(search(), {
      code: 'ENOHOST',
      message: `no host takes writes; ${one.host}: no response within ${HELD_MS} ms; ${other.host}: the server is read-only`,
    })
    await until('the other host to have responded', async () => {
      return proxy.connections() > 0 && proxy.open() === 0
    })
    limits.endAll()
    await failed
    const alone = findHost(`${frozen.url}?target_session_attrs=primary`, 200)
    const problem = await alone.then(() => null, connectionProblem)
    t.equal(problem, 'the server cannot be reached: no response within 200 ms')
    // Simulates a promotion.
    await sql.begin('read write', (tx) =>
      tx.unsafe(`alter database ${database?.name} reset default_transaction_read_only`),
    )
    t.same(await search(), { host: other.hostname, port: Number(other.port) })
  },
)

t.test(
  'findHost(): finds a standby that is promoted while another host does not respond',
  async (t) => {
    const { url, sql } = await createDatabase()
    const [database] = await sql<{ name: string }[]>`select current_database() as name`
    await sql.unsafe(`alter database ${database?.name} set default_transaction_read_only = on`)
    const frozen = await startDatabaseProxy(url)
    frozen.freezeAt('pg_is_in_recovery')
    const standby = await startDatabaseProxy(url)
    const { host, hostname, port } = new URL(standby.url)
    const search = findHost(
      standby.url.replace(host, `${new URL(frozen.url).host},${host}`),
      HELD_MS,
    )
    await until('the standby to have responded', async () => {
      return standby.connections() > 0 && standby.open() === 0
    })
    await sql.begin('read write', (tx) =>
      tx.unsafe(`alter database ${database?.name} reset default_transaction_read_only`),
    )
    t.same(await search, { host: hostname, port: Number(port) })
  },
)

t.test('a command ends at a proxy that accepts and closes connections', async (t) => {
  const proxy = await startTcpServer((socket) => socket.destroy())
  const sql = connect(`postgres://127.0.0.1:${proxy.port}/x`, { max: 1 })
  await t.rejects(sql`select 1`, { code: 'ECONNRESET' })
  await t.rejects(sql`select 1`, { code: 'ECONNRESET' }, 'and the next attempt is a new one')
  await sql.end()
})
