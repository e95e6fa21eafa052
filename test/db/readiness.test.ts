import { pino } from 'pino'
import t from 'tap'
import { type Availability, createAvailability } from '../../src/db/availability.ts'
import { ConnectionLost, Unreachable } from '../../src/db/connection-errors.ts'
import type { Pool } from '../../src/db/pool.ts'
import { quietLog } from '../../src/db/quiet-log.ts'
import { createReadiness } from '../../src/db/readiness.ts'

const coded = (code: string) => Object.assign(new Error(`error ${code}`), { code })
const refused = new Unreachable('cannot connect', coded('ECONNREFUSED'))

const outOfSpace = 'the database server is out of disk space'

/** Returns an availability that has seen a heartbeat, and its log. */
async function available(answers: { isStandby?: boolean } = {}) {
  const space: { checks: number; error?: Error } = { checks: 0 }
  const lines: { level: number; msg: string; reason?: string }[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const use = async () => {
    if (answers.isStandby === undefined) throw refused
    return answers.isStandby ? 'the database is a standby, which takes no writes' : null
  }
  const availability = createAvailability({
    log,
    pool: { use: use as Pool['use'], renew: () => undefined },
    checkSpace: async () => {
      space.checks += 1
      if (space.error) throw space.error
    },
  })
  await availability.observe(async () => undefined)
  return {
    availability,
    log,
    space,
    messages: () => lines.map(({ msg }) => msg),
    /** Returns the levels of these log messages. */
    levelsOf: (message: string) =>
      lines.filter(({ msg }) => msg === message).map(({ level }) => log.levels.labels[level]),
  }
}

const succeeding = ({ observe }: Availability) => observe(async () => undefined)

const failing = ({ observe }: Availability, error: unknown) =>
  observe(async () => {
    throw error
  }).catch(() => undefined)

t.test('readiness: a process without a heartbeat is starting', async (t) => {
  const availability = createAvailability({
    log: pino({ level: 'silent' }),
    pool: { use: async () => Promise.reject(refused), renew: () => undefined },
    checkSpace: async () => undefined,
  })
  t.equal(await createReadiness(availability, async () => null)(), 'the process is starting')
})

t.test('readiness: names the reason, by the error of the heartbeat', async (t) => {
  for (const [error, reason] of [
    [refused, 'the database cannot be reached'],
    [new ConnectionLost(coded('ECONNRESET')), 'the database cannot be reached'],
    [coded('ESTANDBY'), 'error ESTANDBY'],
    [coded('25006'), 'the database is read-only: default_transaction_read_only is on'],
    [coded('53100'), outOfSpace],
    [coded('53200'), 'the database server is out of memory'],
    [coded('58030'), 'the database server cannot read or write its disk'],
    [coded('57014'), 'the database is behind: it did not finish a write in time'],
    [coded('55P03'), 'the database is behind: it did not finish a write in time'],
    [coded('42883'), 'the database refused a write (42883)'],
  ] as const) {
    const { availability } = await available()
    const readiness = createReadiness(availability, async () => null)
    t.equal(await readiness(), null)
    await failing(availability, error)
    t.equal(await readiness(), reason)
    await availability.observe(async () => undefined)
    t.equal(await readiness(), null)
  }
  const { availability } = await available({ isStandby: true })
  await failing(availability, coded('25006'))
  t.equal(availability.problem(), 'the database is a standby, which takes no writes')
})

t.test('readiness: a heartbeat that was not acknowledged for 10 s is too old', async (t) => {
  let now = 0
  t.intercept(performance, 'now', { value: () => now })
  const { availability } = await available()
  now = 9_999
  t.equal(availability.problem(), null)
  now = 12_345
  t.equal(
    availability.problem(),
    'the database is behind: it has not acknowledged a write for 12 s',
  )
})

t.test('readiness: room for more data is checked once a minute, and after an error', async (t) => {
  let now = 0
  t.intercept(performance, 'now', { value: () => now })
  const { availability, space } = await available()
  const sendHeartbeat = () => availability.observe(async () => undefined).catch(() => undefined)
  t.equal(space.checks, 0, 'not at the first heartbeat')
  await sendHeartbeat()
  await sendHeartbeat()
  t.equal(space.checks, 1)
  now = 60_001
  space.error = coded('53400')
  await sendHeartbeat()
  t.equal(space.checks, 2)
  t.equal(availability.problem(), null, 'a limit of temporary files says nothing')
  now = 120_002
  space.error = coded('53100')
  await sendHeartbeat()
  t.equal(availability.problem(), outOfSpace)
  delete space.error
  await sendHeartbeat()
  t.equal(availability.problem(), null)

  t.equal(space.checks, 4, 'and at each heartbeat until there is room')
  await sendHeartbeat()
  t.equal(space.checks, 4)

  space.error = coded('53100')
  availability.report(coded('53100'))
  await sendHeartbeat()
  t.equal(availability.problem(), outOfSpace)
  await sendHeartbeat()
  t.equal(availability.problem(), outOfSpace, 'a heartbeat alone changes nothing')
  t.equal(space.checks, 6)
})

t.test('readiness: responds in time if the database never responds', async (t) => {
  const { availability } = await available()
  const readiness = createReadiness(availability, () => new Promise(() => undefined))
  t.equal(await readiness(), 'the database cannot be reached')
})

t.test(
  'availability: logs one line for a loss and one for the return, however much fails meanwhile',
  async (t) => {
    const { availability, log, messages } = await available()
    const quiet = quietLog(log, availability)
    for (let n = 0; n < 3; n++) {
      availability.lost(new ConnectionLost(coded('ECONNRESET')))
      await failing(availability, refused)
      quiet.warn({ err: coded('ECONNREFUSED') }, 'a task failed')
      availability.report(coded('53100'))
    }
    await availability.observe(async () => undefined)
    t.same(
      messages().filter((message) => message !== 'a task failed'),
      ['database unavailable', 'database available again'],
    )
  },
)

t.test('availability: a bad block is no outage, however often it is read', async (t) => {
  for (const code of ['58030', '53200', '53100']) {
    const { availability, log, space, messages, levelsOf } = await available()
    await succeeding(availability)
    let due = 0
    availability.onDue(() => {
      due += 1
    })
    const quiet = quietLog(log, availability)
    for (let n = 0; n < 3; n++) {
      quiet.warn({ err: coded(code) }, 'a task failed')
      quiet.warn({ err: coded(code) }, 'a task failed')
      t.equal(availability.problem(), null)
      await succeeding(availability)
    }
    t.equal(due, 0, 'no heartbeat before its time')
    t.equal(space.checks, 4, 'one check for each heartbeat')
    t.same(levelsOf('a task failed'), Array(6).fill('warn'))
    t.equal(messages().length, 6)

    space.error = coded(code)
    quiet.warn({ err: coded(code) }, 'a task failed')
    await succeeding(availability).catch(() => undefined)
    t.equal(levelsOf('a task failed').at(-1), 'debug')
    t.equal(messages().filter((message) => message === 'database unavailable').length, 1)
  }
})

t.test('availability: a connection that is lost in a check of space is an outage', async (t) => {
  const { availability, space } = await available()
  space.error = new ConnectionLost(coded('ECONNRESET'))
  await t.rejects(succeeding(availability), space.error)
  t.equal(availability.problem(), 'the database cannot be reached')
})

t.test('quietLog: a loss is logged at its level unless the next heartbeat fails', async (t) => {
  for (const error of [
    new ConnectionLost(coded('ECONNRESET')),
    refused,
    new Error('Connection terminated unexpectedly'),
    coded('25006'),
    coded('ESTANDBY'),
  ]) {
    const { availability, log, messages, levelsOf } = await available()
    let due = 0
    availability.onDue(() => {
      due += 1
    })
    const quiet = quietLog(log, availability)
    quiet.warn({ err: error }, 'alone')
    t.equal(due, 1, 'a heartbeat finds out')
    t.same(messages(), [])
    await succeeding(availability)
    t.same(levelsOf('alone'), ['warn'])
    t.equal(availability.problem(), null)

    quiet.warn({ err: error }, 'together')
    const heartbeat = failing(availability, refused)
    quiet.warn({ err: error }, 'meanwhile')
    await heartbeat
    quiet.warn({ err: error }, 'afterwards')
    await succeeding(availability)
    for (const message of ['together', 'meanwhile', 'afterwards']) {
      t.same(levelsOf(message), ['debug'], message)
    }
    t.equal(messages().filter((message) => message === 'database unavailable').length, 1)

    quiet.warn({ err: error }, 'before the connection of the heartbeat')
    availability.lost(new ConnectionLost(coded('ECONNRESET')))
    await Promise.resolve()
    t.same(levelsOf('before the connection of the heartbeat'), ['debug'])
  }
})

t.test('quietLog: an outage explains errors of the database, and no others', async (t) => {
  const lostConnection = new ConnectionLost(coded('ECONNRESET'))
  const busy = new Unreachable('no connection became free')
  const explained = [refused, lostConnection, busy, ...['25006', '53100', '57014'].map(coded)]
  const others = [coded('23505'), new TypeError('x is not a function'), new Error('a bug')]
  const providers = coded('ECONNREFUSED')
  for (const [outage, quietened, loud] of [
    [coded('53100'), explained, [...others, coded('42883'), providers]],
    [refused, [...explained, providers], [...others, coded('42883')]],
    [coded('42883'), [...explained, coded('42883')], [...others, providers]],
  ] as const) {
    const { availability, log, levelsOf } = await available()
    await failing(availability, outage)
    const quiet = quietLog(log, availability)
    for (const error of quietened) quiet.error({ err: error }, 'explained')
    for (const error of loud) quiet.error({ err: error }, 'another')
    t.same(new Set(levelsOf('explained')), new Set(['debug']))
    t.same(
      levelsOf('another'),
      loud.map(() => 'error'),
    )
  }
})

t.test('quietLog: errors of other systems are logged unchanged', async (t) => {
  const lines: { level: number }[] = []
  const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const { availability } = await available()
  let heartbeats = 0
  availability.onDue(() => {
    heartbeats += 1
  })
  const quiet = quietLog(log, availability)
  quiet.error({ err: coded('ECONNREFUSED') }, 'the provider cannot be reached')
  quiet.error({ err: new Unreachable('no connection became free') }, 'all are busy')
  quiet.warn('no error at all')
  t.same(
    lines.map(({ level }) => level),
    [50, 50, 40],
  )
  t.equal(heartbeats, 0)
})
