import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Sql } from '../../src/db/client.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import type { TestOrganisation } from '../fixtures/organisation.ts'
import { takenBySandbox } from '../fixtures/sandbox.ts'
import { until } from '../fixtures/time.ts'
import type { Receiver } from '../fixtures/webhooks.ts'

const EMAIL_CALLERS = 2

/** Between two requests of a caller: the machine has other work. */
const EMAIL_EVERY_MS = 100
const SMS_EVERY_MS = 500

/** An SMS that is due within 90 s has a job with that time. It must be accepted before, also during a failover. */
const SOON_MS = 60_000
/** A later one waits for the clock. */
const LATE_MS = 120_000

const LIMIT_MS = 240_000

type Accepted = { id: string; at: number; dueAt: number }

export type Traffic = ReturnType<typeof startTraffic>

/** Runs queries on a connection of its own: one to a frozen server would never respond. */
export type Ask = <Result>(work: (sql: Sql) => Promise<Result>) => Promise<Result>

/** Steady sends to one API. Callers repeat a request with its Idempotency-Key until it is accepted. */
export function startTraffic(
  ask: Ask,
  options: { base: string; organisation: TestOrganisation; receiver: Receiver },
) {
  const { base, organisation, receiver } = options
  const accepted: Accepted[] = []
  const late: Accepted[] = []
  /** The responses other than 200, by status; 0: none arrived. */
  const refusals: Record<number, number> = {}
  let isOver = false

  async function send(path: string, body: unknown, dueAt = Date.now()): Promise<Accepted> {
    const headers = { 'Idempotency-Key': randomUUID() }
    for (;;) {
      const answer = await post(`${base}${path}`, organisation.liveKey, body, headers).catch(
        () => null,
      )
      if (answer?.status === 200) return { id: answer.json.id, at: performance.now(), dueAt }
      const status = answer?.status ?? 0
      refusals[status] = (refusals[status] ?? 0) + 1
      await pause(EMAIL_EVERY_MS)
    }
  }
  function sendSms(afterMs: number) {
    const dueAt = Date.now() + afterMs
    return send('/v1/sms', anSms({ scheduledAt: new Date(dueAt).toISOString() }), dueAt)
  }

  async function call(everyMs: number, sendOne: () => Promise<Accepted>) {
    while (!isOver) {
      accepted.push(await sendOne())
      await pause(everyMs)
    }
  }
  const callers = Promise.all([
    ...Array.from({ length: EMAIL_CALLERS }, () =>
      call(EMAIL_EVERY_MS, () => send('/v1/emails', anEmail(organisation.domain))),
    ),
    call(SMS_EVERY_MS, () => sendSms(SOON_MS)),
  ])

  const allDelivered = async (ids: string[]) => {
    const [row] = await ask(
      (sql) => sql<{ waiting: number }[]>`
      select count(*)::integer as waiting
      from unnest(${ids}::text[]) a (id)
      left join app.messages m on m.id = core.decode_id(split_part(a.id, '_', 1), a.id)
      where m.status is distinct from 'delivered'`,
    )
    return row?.waiting === 0
  }

  const reported = new Set<string>()
  let read = 0
  function allReported(ids: string[]): boolean {
    for (const { body } of receiver.received.slice(read)) {
      const { type, data } = JSON.parse(body.toString())
      if (type.endsWith('.delivered')) reported.add(data.id)
      read += 1
    }
    return ids.every((id) => reported.has(id))
  }

  async function untilDone(ids: string[]) {
    const all = `all ${ids.length} messages that are due`
    await until(`${all} to be delivered`, () => allDelivered(ids), LIMIT_MS)
    await until(`webhooks about ${all}`, async () => allReported(ids), LIMIT_MS)
  }
  const idsOf = (messages: Accepted[]) => messages.map(({ id }) => id)

  return {
    refusals,
    count: () => accepted.length,
    /** Sends an SMS that waits for the clock. */
    async sendLate() {
      late.push(await sendSms(LATE_MS))
    },
    /** Waits until this many more messages are accepted. */
    more(count: number) {
      const enough = accepted.length + count
      return until(`${count} accepts`, async () => accepted.length >= enough, LIMIT_MS)
    },
    /** Returns the longest time between two accepts, in seconds, of which the second was after `since`. */
    longestGap(since: number): number {
      const times = accepted.map(({ at }) => at).sort((one, other) => one - other)
      const gaps = times.map((at, place) => (at < since ? 0 : at - (times[place - 1] ?? at)))
      return Math.max(...gaps) / 1000
    },
    /** Waits until all messages that are due by now are delivered and reported to the webhook. */
    untilDelivered() {
      const now = Date.now()
      return untilDone(idsOf([...accepted, ...late].filter(({ dueAt }) => dueAt <= now)))
    },
    /** Ends the sends, and waits until every message is delivered and reported, also those due later. */
    async stop() {
      isOver = true
      await callers
      await untilDone(idsOf([...accepted, ...late]))
    },
    /** Returns how many messages were sent and stored, and how many the sandbox took twice. */
    async counts() {
      const [row] = await ask(
        (sql) => sql<{ stored: number; ambiguous: number; doubled: number }[]>`
        select count(*)::integer as stored, count(*) filter (where m.attempts > 1)::integer as ambiguous,
          (select count(*)::integer from ${takenBySandbox(sql)} s join app.messages o on o.id = s.message_id
            where s.attempts > 1 and o.attempts < 2) as doubled
        from app.messages m where m.organisation_id = core.decode_id('org', ${organisation.id})`,
      )
      return { sent: accepted.length + late.length, ...row }
    },
  }
}
