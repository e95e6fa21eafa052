import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate/index.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { type ServiceProcess, spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'
import { createEndpoint, startReceiver } from '../fixtures/webhooks.ts'
import { type Ask, startTraffic } from './traffic.ts'

/** The service with a process for each role, its database and its traffic. */
export type Route = Awaited<ReturnType<typeof startRoute>>

/** Creates a database and starts the service on it, with `addressOf(database)` as DATABASE_URL. */
export async function startRoute(
  name: string,
  database: string,
  addressOf: (database: string) => string,
) {
  const url = addressOf(database)
  const admin = connect(addressOf('postgres'), { max: 1 })
  await admin.unsafe(`create database ${database}`)
  await admin.end()
  await migrate(url)
  const ask: Ask = async (work) => {
    const sql = connect(url, { max: 1 })
    return work(sql).finally(() => sql.end({ timeout: 0 }))
  }
  const organisation = await ask((sql) => createOrganisation(sql, { smsIncluded: 10_000 }))
  const receiver = await startReceiver()
  const env = { WEBHOOK_ALLOW_PRIVATE: 'true' }
  const processes: ServiceProcess[] = []
  for (const role of ['api', 'worker', 'clock'] as const) {
    processes.push(await spawnService(url, role, env))
  }
  // The start of the service allows http endpoints.
  await ask((sql) => createEndpoint(sql, organisation, { url: receiver.url }))
  const traffic = startTraffic(ask, { base: processes[0]?.base ?? '', organisation, receiver })

  const failingChecks = async () => {
    const rows = await ask((sql) => {
      return sql<{ name: string }[]>`select name from ops.checks where not ok`
    })
    return rows.map(({ name }) => name)
  }

  return {
    name,
    traffic,
    /** Returns the processes that have ended. */
    ended: () => processes.filter(({ child }) => child.exitCode ?? child.signalCode),
    /** Waits until all checks of the database pass, and the clock has run a task that started after `since`. */
    async untilHealthy(since: Date) {
      await until('all checks to pass', async () => (await failingChecks()).length === 0, 120_000)
      const runs = () =>
        ask((sql) => sql`select from app.task_runs where started_at > ${since} and error is null`)
      await until('a scheduled task', async () => (await runs()).length > 0, 180_000)
    },
  }
}
