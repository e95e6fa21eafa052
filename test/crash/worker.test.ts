import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { endWaiting, fiveHundred, holdSandbox } from '../fixtures/load.ts'
import { startTestService } from '../fixtures/service.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const messages = fiveHundred(url, sql, base)

t.test('worker killed while another runs: its messages are delayed by seconds', async (t) => {
  const other = await messages.startWorker()
  const victim = await messages.startWorker()
  // Stopped until the victim has most of the jobs; its lock stays, so it is not removed.
  other.child.kill('SIGSTOP')
  const [organisation, killedAt] = await sql.begin(async (tx) => {
    await holdSandbox(tx)
    const organisation = await messages.queue('delivered')
    const inHand = async () => (await messages.countsOf(organisation)).inHand
    await until('most to be in hand', async () => (await inHand()) > messages.MESSAGES / 2)
    await victim.end('SIGKILL')
    t.ok((await inHand()) > messages.MESSAGES / 2)
    await endWaiting(tx)
    return [organisation, performance.now()] as const
  })
  other.child.kill('SIGCONT')

  await messages.all(organisation, 'sent')
  const seconds = (performance.now() - killedAt) / 1000
  t.comment(`all sent ${seconds.toFixed(1)} s after the kill`)
  await messages.checkNothingLost(t, organisation)
  t.equal(await other.end('SIGTERM'), 0)
})

t.test('workers killed during attempts: their messages are delayed by seconds', async (t) => {
  const victims = await Promise.all([messages.startWorker(40), messages.startWorker(40)])
  const organisation = await messages.queue('delivered')
  // Each worker is killed at some point between the start of an attempt and its record.
  for (const [place, victim] of victims.entries()) {
    await until(
      'hand-overs',
      async () => (await messages.countsOf(organisation)).taken > place * 100,
    )
    await victim.end('SIGKILL')
  }
  const killedAt = performance.now()
  const { taken, sent } = await messages.countsOf(organisation)
  t.comment(`killed with ${taken} taken and ${sent} noted as sent`)
  const next = await messages.startWorker()
  await messages.all(organisation, 'sent')
  const seconds = (performance.now() - killedAt) / 1000
  t.comment(`all sent ${seconds.toFixed(1)} s after the last kill`)
  await messages.checkNothingLost(t, organisation)
  t.equal(await next.end('SIGTERM'), 0)
})
