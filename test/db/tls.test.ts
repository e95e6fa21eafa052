import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect as dial } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { connect, pgOptions } from '../../src/db/client.ts'
import { serverUser } from '../../src/db/embedded/binaries.ts'
import { openEmbedded } from '../../src/db/embedded/index.ts'
import { findHost } from '../../src/db/hosts.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { clusterUrl } from '../fixtures/cluster.ts'
import { anEmail, post } from '../fixtures/http.ts'
import { selfSigned, startTcpServer } from '../fixtures/network.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

/** An address of this machine that is not loopback. */
const outside = Object.values(networkInterfaces())
  .flat()
  .find((address) => address?.family === 'IPv4' && !address.internal)?.address
const certificate = selfSigned(['127.0.0.1', ...(outside ? [outside] : [])])
const noOpenssl = !certificate && 'there is no openssl on this machine'

type Outcome = boolean | string

/** Returns for each driver whether its connection is encrypted, or the code of its error. */
const drivers: [name: string, ask: (url: string) => Promise<Outcome>][] = [
  [
    'postgres.js',
    async (url) => {
      const sql = connect(url, { max: 1 })
      const asked = sql<{ ssl: boolean }[]>`
        select ssl from pg_stat_ssl where pid = pg_backend_pid()`
      return asked
        .then(
          ([row]) => row?.ssl ?? 'no row',
          ({ code, message }) => code ?? message,
        )
        .finally(() => sql.end())
    },
  ],
  [
    'pg',
    async (url) => {
      const pool = new pg.Pool({ ...pgOptions(url), max: 1 })
      return pool
        .query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')
        .then(
          ({ rows }) => rows[0].ssl,
          ({ code, message }) => code ?? message,
        )
        .finally(() => pool.end())
    },
  ],
]

t.test('server with TLS', { skip: noOpenssl }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postgram-tls-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  const [root, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  await writeFile(root, certificate?.cert ?? '')
  await writeFile(key, certificate?.key ?? '', { mode: 0o600 })
  const { uid = -1, gid = -1 } = await serverUser('')
  await chown(key, uid, gid)
  const settings = ['fsync=off', 'ssl=on', `ssl_cert_file=${root}`, `ssl_key_file=${key}`]
  const server = await openEmbedded(join(folder, 'data'), {
    postgresFlags: settings.flatMap((setting) => ['-c', setting]),
  })
  t.teardown(() => server.close())
  const at = (host: string, parameters: string) =>
    `${server.url.replace('127.0.0.1', host)}?${parameters}`
  const trusted = `sslrootcert=${root}`

  for (const [name, ask] of drivers) {
    t.test(`${name}: applies sslmode and sslrootcert`, async (t) => {
      for (const [url, outcome] of [
        [at('127.0.0.1', 'sslmode=disable'), false],
        [at('127.0.0.1', ''), false],
        [at('127.0.0.1', 'sslmode=require'), true],
        [at('127.0.0.1', `sslmode=verify-full&${trusted}`), true],
        [at('127.0.0.1', trusted), true],
        // The certificate names its IP address only.
        [at('localhost', `sslmode=verify-ca&${trusted}`), true],
        [at('localhost', `sslmode=verify-full&${trusted}`), 'ERR_TLS_CERT_ALTNAME_INVALID'],
        [at('127.0.0.1', 'sslmode=verify-full'), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
        [at('127.0.0.1', 'sslmode=verify-full&sslrootcert=system'), 'DEPTH_ZERO_SELF_SIGNED_CERT'],
      ] as const) {
        t.equal(await ask(url), outcome, url.replace(/.*@/, ''))
      }
    })

    t.test(
      `${name}: verifies a server on another machine without sslmode`,
      { skip: !outside && 'this machine has no address but loopback' },
      async (t) => {
        const { port } = await startTcpServer((socket) => {
          const other = dial(Number(new URL(server.url).port), '127.0.0.1')
          socket.pipe(other).pipe(socket)
          other.on('error', () => socket.destroy())
          socket.on('close', () => other.destroy())
        }, outside)
        const remote = Object.assign(new URL(server.url), { hostname: outside, port: `${port}` })
        t.equal(await ask(remote.href), 'DEPTH_ZERO_SELF_SIGNED_CERT')
        t.equal(await ask(`${remote.href}?${trusted}`), true)
        t.equal(await ask(`${remote.href}?sslmode=disable`), false)
      },
    )
  }

  t.test('findHost(): drops a host that stops responding after the TLS handshake', async (t) => {
    const { port } = new URL(server.url)
    const silent = await startTcpServer((near) => {
      const far = dial(Number(port), '127.0.0.1')
      far.on('error', () => near.destroy())
      near.on('close', () => far.destroy()).pipe(far)
      // The first chunk accepts TLS, the second is the handshake.
      let chunks = 0
      far.on('data', (chunk) => {
        chunks += 1
        if (chunks <= 2) near.write(chunk)
      })
    })
    const both = at(`127.0.0.1:${silent.port},127.0.0.1`, trusted)
    t.same(await findHost(both), { host: '127.0.0.1', port: Number(port) })
    await until('the connection to be closed', async () => {
      return silent.connections() > 0 && silent.open() === 0
    })
  })

  t.test('a service with verify-full has no connection without TLS', async (t) => {
    await migrate(at('127.0.0.1', trusted))
    const sql = connect(server.url, { max: 1, applicationName: 'test' })
    t.teardown(() => sql.end())
    const { liveKey, domain } = await createOrganisation(sql)
    const { base, stop } = await startTestService(at('127.0.0.1', trusted))
    const { json } = await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    await until('delivery', async () => {
      const [row] =
        await sql`select from ops.messages where id = ${json.id} and status = 'delivered'`
      return row
    })
    const connections = await sql<{ application: string; ssl: boolean }[]>`
      select distinct a.application_name as application, s.ssl
      from pg_stat_activity a join pg_stat_ssl s using (pid)
      where a.datname = 'postgram' and a.application_name <> 'test' order by 1`
    t.same(
      connections.map(({ application, ssl }) => [application, ssl]),
      ['postgram', 'postgram clock', 'postgram heartbeat', 'postgram worker'].map((name) => [
        name,
        true,
      ]),
    )
    await stop()
  })
})

t.test('a server without TLS is refused if sslmode requires TLS', async (t) => {
  for (const [name, ask] of drivers) {
    for (const mode of ['require', 'verify-full']) {
      const url = `${await clusterUrl()}?sslmode=${mode}`
      t.match(await ask(url), /^(ECONNRESET|The server does not support SSL connections)$/, name)
    }
  }
})
