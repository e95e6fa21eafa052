import { createServer } from 'node:http'
import t from 'tap'
import { listenProblem, namingSetting } from '../../src/cli/explain.ts'
import { connect, SERVICE_ROLE } from '../../src/db/client.ts'
import { SetupError } from '../../src/errors.ts'
import { listen } from '../../src/http/listen.ts'
import { createDatabase, serviceUrl } from '../fixtures/database.ts'
import { freePort } from '../fixtures/network.ts'

const { url, sql } = await createDatabase()
const at = (changes: Partial<URL>) => Object.assign(new URL(url), changes).href

/** Returns the error line of a command that uses this database. */
async function lineOf(address: string, role?: typeof SERVICE_ROLE): Promise<string> {
  const other = connect(address, { max: 1, role })
  try {
    await namingSetting('DATABASE_URL', () => other`select`)
    return 'no problem'
  } catch (error) {
    return error instanceof SetupError ? error.message : `unexpected: ${error}`
  } finally {
    await other.end()
  }
}

t.test(
  'namingSetting: a database that cannot be used gives one line that names its setting',
  async (t) => {
    const port = `${await freePort()}`
    const stranger = 'postgram_stranger'
    await sql.unsafe(`do $$ begin create role ${stranger} login password 'x';
    exception when duplicate_object or unique_violation then null; end $$`)
    for (const [address, line] of [
      [at({ port }), /^the server cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:\d+$/],
      [
        at({ hostname: 'none.invalid', search: 'sslmode=disable' }),
        /^the server cannot be reached: getaddrinfo \w+ none\.invalid$/,
      ],
      [
        `${at({ pathname: '/x' })}?host=/nowhere`,
        /^the server cannot be reached: connect ENOENT \/nowhere/,
      ],
      [
        at({ pathname: '/postgram_none' }),
        /^database "postgram_none" does not exist: create it, as \/docs\/deployment#postgres says$/,
      ],
      [at({ username: 'postgram_nobody', password: 'x' }), /"postgram_nobody"/],
      [
        at({ username: stranger, password: 'x' }),
        /^its login is not a member of postgram_service: run "grant postgram_service to …" as the owner$/,
      ],
      [
        at({ search: 'sslmode=require' }),
        /^the server offers no TLS: set sslmode=disable if the network is private/,
      ],
    ] as const) {
      const found = await lineOf(address, SERVICE_ROLE)
      t.match(found, /^DATABASE_URL: [^\n]+$/)
      t.match(found.replace('DATABASE_URL: ', ''), line)
    }
    t.equal(await lineOf(await serviceUrl(url), SERVICE_ROLE), 'no problem')
  },
)

t.test('listenProblem: names the setting of a port or host that cannot be used', async (t) => {
  const taken = createServer()
  const port = Number(new URL(await listen(taken, '127.0.0.1', 0)).port)
  t.teardown(() => taken.close())
  const problemOf = (host: string, metricsPort: number | null) =>
    listen(createServer(), host, port).catch((error) => listenProblem(error, { host, metricsPort }))
  t.equal(await problemOf('127.0.0.1', null), `PORT: 127.0.0.1:${port} is in use (EADDRINUSE)`)
  t.equal(
    await problemOf('127.0.0.1', port),
    `METRICS_PORT: 127.0.0.1:${port} is in use (EADDRINUSE)`,
  )
  t.equal(
    await problemOf('192.0.2.99', null),
    'HOST: 192.0.2.99 is not an address of this machine (EADDRNOTAVAIL)',
  )
  t.match(await problemOf('none.invalid', null), /^HOST: none\.invalid cannot be resolved \(\w+\)$/)
  const denied = { code: 'EACCES', syscall: 'listen', address: '0.0.0.0', port: 80 }
  t.equal(
    listenProblem(denied, { host: '0.0.0.0', metricsPort: null }),
    'PORT: 0.0.0.0:80 may not be used by this user (EACCES)',
  )
  t.equal(listenProblem(new Error('a bug'), { host: '', metricsPort: null }), null)
})
