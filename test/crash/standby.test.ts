import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { anEmail, get, post } from '../fixtures/http.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import {
  initialise,
  noPostgres,
  runPostgres,
  serverFolder,
  startDatabaseProxy,
  startServer,
  startStandby,
} from '../fixtures/postgres.ts'
import { runCommand } from '../fixtures/processes.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const STANDBY = 'the database is a standby, which takes no writes'

t.test(
  'failover: readyz and doctor report a standby until it is promoted',
  { skip: noPostgres },
  async (t) => {
    const folder = await serverFolder()
    await initialise(join(folder, 'primary'))
    const primary = await startServer(join(folder, 'primary'), ['fsync = off'])
    await migrate(primary.urlOf('postgres', 'postgres'))
    const sql = connect(primary.urlOf('postgres', 'postgres'), { max: 1 })
    const { liveKey, domain } = await createOrganisation(sql)
    const proxy = await startDatabaseProxy(primary.urlOf('postgres', 'postgres'))
    const messages: string[] = []
    const log = pino({}, { write: (line) => void messages.push(JSON.parse(line).msg) })
    const { base } = await startTestService(proxy.url, { roles: ['api'], log })
    const send = () => post(`${base}/v1/emails`, liveKey, anEmail(domain))
    const ready = async () => (await get(`${base}/readyz`, null)).json.status
    t.equal((await send()).status, 200)
    await sql.end()

    const standby = await startStandby(primary, join(folder, 'standby'))
    await primary.stop()
    const address = standby.urlOf('postgres', 'postgres')
    proxy.leadTo(address)
    await until('readyz to say so', async () => (await ready()) === STANDBY)
    const { status, json } = await send()
    t.equal(status, 500)
    t.match(json.error.message, /nothing was sent/)
    const SECRET_KEY = Buffer.alloc(32, 7).toString('base64')
    const doctor = await runCommand(['doctor'], { DATABASE_URL: address, SECRET_KEY })
    t.equal(doctor.code, 1)
    t.equal(doctor.stdout.split('\n').length, 3, 'the version, and nothing else')
    t.match(doctor.stdout, new RegExp(`^PROBLEM database: ${STANDBY}`, 'm'))

    await runPostgres('pg_ctl', 'promote', '-w', '-D', standby.data)
    await until('readiness', async () => (await ready()) === 'ready')
    await until('a send to be accepted', async () => (await send()).status === 200)
    t.same(
      messages.filter((message) => message.startsWith('database')),
      ['database unavailable', 'database available again'],
    )
  },
)
