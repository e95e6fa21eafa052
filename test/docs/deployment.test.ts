/** Runs the commands of src/docs/deployment.md, in order, as an operator of a new machine does. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connect } from '../../src/db/client.ts'
import { createMachine, lackOf } from '../fixtures/deployment.ts'
import { type PageStep, packagesOf, readPage, stepsOf } from '../fixtures/pages.ts'
import { initialise, noPostgres, serverFolder, startServer } from '../fixtures/postgres.ts'
import { until } from '../fixtures/time.ts'

const steps = stepsOf(await readPage('deployment'))
const marked = steps.filter((step) => step.mark !== 'not-run')
const skip = noPostgres || lackOf([...packagesOf(steps), 'systemd', 'curl', 'openssl'])

/** A server with passwords for all but the administrator, as Debian makes it. */
async function startPostgres() {
  const data = join(await serverFolder(), 'data')
  await initialise(data)
  await writeFile(
    join(data, 'pg_hba.conf'),
    'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  )
  const server = await startServer(data, ['fsync = off'])
  const sqlOf = (t: Test, database: string) => {
    const sql = connect(server.urlOf('postgres', database), { max: 1 })
    t.teardown(() => sql.end())
    return sql
  }
  return { server, sqlOf }
}

t.test(
  'deployment page: its commands install, restore and remove the service, in order',
  { skip },
  async (t) => {
    const first = await startPostgres()
    const machine = await createMachine(first.server)
    const ran: PageStep[] = []

    /** Does what a block says; settles with what it printed. */
    const run = async (step: PageStep) => {
      ran.push(step)
      if (step.mark === 'run') return machine.shell(step.text)
      await machine.write(step.value, `${step.text}\n`)
      return ''
    }
    /** The blocks of a section, in order, but for that of this id. */
    const runSection = async (name: string, { without = 'none' } = {}) => {
      const printed: string[] = []
      for (const step of marked) {
        if (step.section === name && step.id !== without) printed.push(await run(step))
      }
      return printed.join('\n')
    }
    const units = () => machine.running().map(({ unit }) => unit)

    await t.test('an owner and a database are made', async () => {
      await runSection('postgres')
    })

    await t.test('the service starts, and delivers the first email', async (t) => {
      const printed = await runSection('systemd')
      t.same(units(), ['postgram'])
      t.match(printed, /SUCCESS: \d+ rules found/)
      const [, id = ''] = /"id":"(em_\w+)"/.exec(printed) ?? []
      const sql = first.sqlOf(t, 'postgram')
      await until('delivery', async () => {
        const [message] = await sql`select status from ops.messages where id = ${id}`
        return message?.status === 'delivered'
      })
    })

    await t.test('the proxy passes requests on, and logs no unsubscribe token', async (t) => {
      await runSection('reverse-proxy')
      t.equal(await machine.statusOf('/u/secret-token'), 404)
      t.equal(await machine.statusOf('/v1/logged'), 404)
      await machine.shell('systemctl stop postgram')
      t.equal(await machine.statusOf('/u/secret-token'), 502)
      t.equal(await machine.statusOf('/v1/logged'), 502)
      for (const name of ['access.log', 'error.log']) {
        const log = await machine.read(`/var/log/nginx/${name}`)
        t.match(log, '/v1/logged')
        t.notMatch(log, 'secret-token')
      }
    })

    await t.test(
      'numbered processes restart one after another, without a lost request',
      async (t) => {
        await runSection('multiple-processes-on-one-machine', { without: 'restart' })
        const before = machine.running()
        const service = [
          'postgram-api@1',
          'postgram-api@2',
          'postgram-clock@1',
          'postgram-worker@1',
        ]
        t.same(units(), ['nginx', ...service])
        let isOver = false
        const statuses = new Set<number | undefined>()
        const ask = async () => {
          while (!isOver) {
            statuses.add(await machine.statusOf('/healthz'))
            await pause(50)
          }
        }
        const restart = steps.filter((step) => step.id === 'restart').map(run)
        const restarted = Promise.all(restart).finally(() => {
          isOver = true
        })
        await Promise.all([restarted, ask()])
        t.same(units(), ['nginx', ...service])
        const pids = before.map(({ pid }) => pid)
        const kept = machine.running().filter(({ pid }) => pids.includes(pid))
        t.same(
          kept.map(({ unit }) => unit),
          ['nginx'],
          'each process of the service is a new one',
        )
        t.same([...statuses], [200])
        const sql = first.sqlOf(t, 'postgram')
        const apis = await sql`select from ops.processes where 'api' = any (roles)`
        t.equal(apis.length, 2)
      },
    )

    await t.test(
      'a dump by its own login is restored on a server that has none of it',
      async (t) => {
        await runSection('backups')
        const second = await startPostgres()
        await machine.usePostgres(second.server)
        await runSection('restore')
        const sql = second.sqlOf(t, 'postgram')
        const kept = await sql`select from ops.messages where status = 'delivered'`
        t.equal(kept.length, 1)
      },
    )

    await t.test('removal leaves nothing behind', async (t) => {
      await runSection('uninstall')
      t.same(units(), ['nginx'])
      for (const folder of ['/etc', '/etc/systemd/system', '/etc/nginx/conf.d']) {
        t.same(
          (await machine.list(folder)).filter((name) => name.startsWith('postgram')),
          [],
        )
      }
    })

    t.same(ran, marked, 'no marked block was left out')
  },
)
