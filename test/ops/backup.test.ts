import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runChecks } from '../../src/cli/doctor/checks.ts'
import { readConfig } from '../../src/config/index.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import type { Role } from '../../src/service/index.ts'
import { createSealer, openSecret } from '../../src/webhooks/secrets.ts'
import { type Answer, anEmail, anSms, get, post } from '../fixtures/http.ts'
import { messageOf } from '../fixtures/messages.ts'
import { createOrganisation, type TestOrganisation } from '../fixtures/organisation.ts'
import {
  initialise,
  noPostgres,
  runPostgres,
  serverFolder,
  startServer,
} from '../fixtures/postgres.ts'
import { createStandIn, type StandIn } from '../fixtures/providers.ts'
import { secrets, startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

/** Starts a service with a provider that keeps its messages when the database is restored. */
const serve = (at: string, provider: StandIn, roles: Role[]) =>
  startTestService(at, { roles, createEmailProvider: () => provider, workerConcurrency: 1 })

const paid = { 'Idempotency-Key': 'invoice-17' }
const email = ({ domain }: TestOrganisation, subject: string) =>
  anEmail(domain, { to: 'someone@receiver.example', subject })
const idOf = ({ json }: Answer): string => json.id

/** Returns a connection of the database's owner that ends with the test. */
function connectFor(t: Test, at: string) {
  const sql = connect(at, { max: 2 })
  t.teardown(() => sql.end())
  return sql
}

/** Starts a server with a database whose owner may create roles and is no superuser. */
async function startFirst(t: Test, folder: string) {
  await initialise(join(folder, 'first'))
  const server = await startServer(join(folder, 'first'), ['fsync = off'])
  const administrator = connectFor(t, server.urlOf('postgres', 'postgres'))
  await administrator`create role postgram login createrole`
  // The page on deployment restores a dump of the roles, which has it.
  await administrator`grant set on parameter temp_file_limit to postgram with grant option`
  await administrator`create database postgram owner postgram`
  const url = server.urlOf('postgram', 'postgram')
  await migrate(url)
  return { server, url, sql: connectFor(t, url) }
}

/**
 * Dumps a database with something of each kind in it: an email that was sent, an SMS that is scheduled,
 * an email whose attempt runs, and two that wait, of which the worker has locked one. All three were
 * sent after the dump.
 */
async function dumpLife(t: Test, folder: string) {
  const { server, url, sql } = await startFirst(t, folder)
  const organisation = await createOrganisation(sql)
  const { id, liveKey } = organisation
  const whole = await serve(url, createStandIn(), ['api', 'worker', 'clock'])
  const send = (subject: string, headers?: Record<string, string>) =>
    post(`${api.base}/v1/emails`, liveKey, email(organisation, subject), headers)
  let api = whole
  const sent = await send('sent', paid)
  const statusOf = async (answer: Answer) => (await messageOf(sql, idOf(answer))).status
  await until('the first to be sent', async () => (await statusOf(sent)) === 'sent')
  const [hook] = await sql<{ id: string; secret: string }[]>`
    select * from ops.create_webhook_endpoint(${id}, 'https://receiver.example/', '{email.sent}')`
  await createSealer(caller(sql), secrets)()
  await whole.stop()

  const slow = createStandIn()
  api = await serve(url, slow, ['api'])
  const scheduledAt = new Date(Date.now() + 3_600_000).toISOString()
  const scheduled = await post(`${api.base}/v1/sms`, liveKey, anSms({ scheduledAt }))
  const inHand = await send('in hand')
  const waiting = [await send('waits'), await send('waits, too')]
  const hangs = Promise.withResolvers<void>()
  slow.onSend = async () => {
    await hangs.promise
    return { outcome: 'sent' }
  }
  const worker = await serve(url, slow, ['worker'])
  const uuidOf = async (answer: Answer) => (await messageOf(sql, idOf(answer))).id
  const [held = ''] = await until('an attempt', async () => slow.handed.length > 0 && slow.handed)
  t.equal(held, await uuidOf(inHand))
  await until('one more to be locked', async () => {
    const locked = await sql`
      select from graphile_worker._private_jobs where locked_at is not null`
    return locked.length === 2
  })

  const roles = join(folder, 'roles.sql')
  const dump = join(folder, 'postgram.dump')
  const administrator = server.urlOf('postgres', 'postgres')
  await runPostgres('pg_dumpall', '--roles-only', `--dbname=${administrator}`, `--file=${roles}`)
  await runPostgres('pg_dump', '--format=custom', `--dbname=${url}`, `--file=${dump}`)

  hangs.resolve()
  await until('the others to be sent', async () => slow.handed.length === 3)
  await Promise.all([worker.stop(), api.stop()])
  return {
    ...{ roles, dump, organisation, hook, sent, scheduled, scheduledAt },
    held,
    waiting: await Promise.all(waiting.map(uuidOf)),
  }
}

/** Starts an empty server and returns how to restore the dump into a new database of it. */
async function startSecond(folder: string, { roles, dump }: { roles: string; dump: string }) {
  await initialise(join(folder, 'second'))
  const server = await startServer(join(folder, 'second'), ['fsync = off'])
  const administrator = server.urlOf('postgres', 'postgres')
  // psql prints that role postgres exists, and continues.
  await runPostgres('psql', administrator, '--quiet', `--file=${roles}`)
  return async (name: string) => {
    const create = `create database ${name} owner postgram`
    await runPostgres('psql', administrator, '--quiet', `--command=${create}`)
    const restored = server.urlOf('postgram', name)
    await runPostgres('pg_restore', '--exit-on-error', `--dbname=${restored}`, dump)
    await migrate(restored)
    return restored
  }
}

async function ok(t: Test, at: string) {
  const env = { DATABASE_URL: at, SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }
  const checks = await runChecks(connectFor(t, at), readConfig(env, { isServing: true }), secrets)
  t.ok(checks.length > 8)
  t.same(
    checks.filter((check) => !check.ok),
    [],
    'the doctor finds nothing',
  )
}

t.test('backup: a dump is restored on another server', { skip: noPostgres }, async (t) => {
  const folder = await serverFolder()
  const life = await dumpLife(t, folder)
  const restore = await startSecond(folder, life)
  const { organisation, held, waiting } = life
  const { liveKey } = organisation

  t.test('backup: the service continues after the restore', async (t) => {
    const restored = await restore('latest')
    const sql = connectFor(t, restored)
    const provider = createStandIn()
    provider.onLookup = () => true
    const { base } = await serve(restored, provider, ['api', 'worker', 'clock'])
    await until('nothing to wait', async () => {
      const queued = await sql`select from ops.messages where status = 'queued'`
      return queued.length === 0
    })
    t.same(provider.asked, [held], 'the provider is asked about the running attempt')
    t.same(provider.handed.sort(), [...waiting].sort(), 'only the waiting messages are sent')

    const replay = await post(`${base}/v1/emails`, liveKey, email(organisation, 'sent'), paid)
    t.equal(replay.headers.get('idempotent-replayed'), 'true')
    t.equal(replay.text, life.sent.text)
    const { json } = await get(`${base}/v1/sms/${idOf(life.scheduled)}`, liveKey)
    t.equal(json.status, 'scheduled')
    const due = await sql<{ dueAt: Date }[]>`select due_at from app.due_messages`
    t.same(
      due.map(({ dueAt }) => dueAt.toISOString()),
      [life.scheduledAt],
    )
    t.same(await sql`select from ops.ledger_check where not is_balanced`, [])
    const fresh = await post(`${base}/v1/emails`, liveKey, email(organisation, 'new'))
    t.equal(fresh.status, 200)
    await ok(t, restored)

    const [endpoint] = await sql<{ secret: string }[]>`
      select e.secret from app.webhook_endpoints e where core.encode_id('we', e.id) = ${life.hook?.id ?? ''}`
    const open = (keys: typeof secrets) => openSecret(keys, endpoint?.secret ?? '')
    t.equal(open(secrets), life.hook?.secret, 'signing secrets open with the SECRET_KEY')
    const other = createSecrets([Buffer.alloc(32, 8).toString('base64')])
    t.throws(() => open(other), /not sealed with SECRET_KEY/, 'and with no other')
  })

  t.test(
    'backup: messages sent since the dump are not sent again after ops.after_restore',
    async (t) => {
      const restored = await restore('earlier')
      const sql = connectFor(t, restored)
      const [, lost = ''] = waiting
      const provider = createStandIn()
      provider.onLookup = ({ id }) => id !== lost

      const api = await serve(restored, provider, ['api'])
      const [queue] = await sql<{ jobs: number }[]>`
      select (waiting + running)::integer as jobs from ops.queue where task = 'send_email'`
      t.equal(queue?.jobs, 3, 'ops.queue counts the messages to send')
      t.same([...(await sql`select ops.after_restore() as count`)], [{ count: 2 }])
      t.same([...(await sql`select ops.after_restore() as count`)], [{ count: 0 }], 'each once')
      await api.stop()

      await serve(restored, provider, ['api', 'worker', 'clock'])
      await until('nothing to wait', async () => {
        const queued = await sql`select from ops.messages where status = 'queued'`
        return queued.length === 0
      })
      t.same(provider.asked.sort(), [held, ...waiting].sort())
      t.same(provider.handed, [lost], 'only the message that the provider does not know')
      await t.rejects(
        sql`select ops.after_restore()`,
        /^a worker is running; stop all workers first/,
      )
      await ok(t, restored)
    },
  )
})
