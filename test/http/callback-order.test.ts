import { hash, randomUUID } from 'node:crypto'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import {
  callbackOf,
  createReporter,
  deliveryStatus,
  failure,
  type MailgunEvent,
  mailgunEvent,
  type SentMessage,
  sendAndHandOver,
} from '../fixtures/mailgun.ts'
import { messageOf, timelineOf } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, {
  roles: ['api', 'worker'],
  createEmailProvider: () => createReporter(),
})

const EVENTS = 1000
const CONNECTIONS = 4
const STARTED_AT = Date.now() / 1000

type Step = { recipient: number; event: string }

/** Sequences of events of a message, each step `<recipient> <event>`. */
const sequences = [
  '0 accepted, 0 delivered',
  '0 accepted, 0 deferred, 0 deferred, 0 delivered',
  '0 accepted, 0 deferred, 0 full',
  '0 accepted, 0 gone',
  '0 accepted, 0 delivered, 0 opened, 0 complained',
  '0 accepted, 0 delivered, 0 unsubscribed',
  '0 delivered, 0 gone',
  '0 delivered, 0 unsubscribed, 0 complained',
  '0 accepted, 1 accepted, 0 delivered, 1 deferred, 2 delivered, 1 delivered',
  '0 delivered, 1 gone, 2 deferred, 2 delivered',
  '0 delivered, 1 full, 2 gone',
  '0 rejected',
  '0 accepted',
].map((sequence) =>
  sequence.split(', ').map((step): Step => {
    const [recipient, event = ''] = step.split(' ')
    return { recipient: Number(recipient), event }
  }),
)

/** Returns messages with at least so many events together. */
const plan: Step[][] = []
for (let left = EVENTS; left > 0; ) {
  const sequence = sequences[plan.length % sequences.length]?.slice(0, left) ?? []
  plan.push(sequence)
  left -= sequence.length
}

const addressOf = (place: number, recipient: number, domain: string) =>
  `recipient-${place}-${recipient}@${domain}`

async function sendAll(domain: string) {
  const organisation = await createOrganisation(sql)
  const emails = plan.map((sequence, place) => ({
    to: [...new Set([0, ...sequence.map(({ recipient }) => recipient)])].map((recipient) =>
      addressOf(place, recipient, domain),
    ),
  }))
  return {
    organisation,
    domain,
    messages: await sendAndHandOver({ base, sql }, organisation, emails),
  }
}
type Sent = Awaited<ReturnType<typeof sendAll>>

/** Returns the events of an organisation's messages in order, without IDs. */
function eventsOf({ messages, domain }: Sent): MailgunEvent[] {
  return plan.flatMap((sequence, place) =>
    sequence.map((step, number) => {
      const { messageId } = messages[place] as SentMessage
      const common = {
        id: `event-${place}-${number}`,
        timestamp: STARTED_AT + place + number / 10,
        recipient: addressOf(place, step.recipient, domain),
      }
      return eventOf(step, messageId, common)
    }),
  )
}

function eventOf({ event }: Step, messageId: string, common: Record<string, unknown>) {
  switch (event) {
    case 'delivered':
      return mailgunEvent(event, messageId, {
        'delivery-status': deliveryStatus(250, 'OK'),
        ...common,
      })
    case 'deferred':
      return failure('temporary', messageId, deliveryStatus(451, 'Try again later'), common)
    case 'full':
      return failure('permanent', messageId, deliveryStatus(552, '5.2.2 Full'), common)
    case 'gone':
      return failure('permanent', messageId, deliveryStatus(550, '5.1.1 Gone'), common)
    default:
      return mailgunEvent(event, messageId, common)
  }
}

/** Posts callbacks one after the other on a connection of its own; returns their statuses. */
async function report(bodies: string[]): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  for (const body of bodies) {
    const call = request(`${base}/providers/mailgun/events`, { method: 'POST', agent })
    const { promise, resolve, reject } = Promise.withResolvers<number>()
    call.once('error', reject).once('response', (response) => {
      text(response).then(() => resolve(response.statusCode ?? 0), reject)
    })
    call.end(body)
    statuses.push(await promise)
  }
  agent.destroy()
  return statuses
}

function shuffled<Item>(items: Item[], seed: string): Item[] {
  const keyed = items.map((item, place) => ({ item, key: hash('sha256', `${seed} ${place}`) }))
  return keyed.sort((one, other) => (one.key < other.key ? -1 : 1)).map(({ item }) => item)
}

/** Returns everything that callbacks change, without IDs, times and the domain of the recipients. */
async function outcomeOf({ organisation, messages, domain }: Sent) {
  const places = new Map(messages.map(({ uuid }, place) => [uuid, place]))
  const states = []
  for (const { id } of messages) {
    const { status, deliveredAt, errorCode, errorMessage, provider } = await messageOf(sql, id)
    const timeline = (await timelineOf(sql, id)).map((event) =>
      event.detail.recipient ? event : event.type,
    )
    states.push({ status, deliveredAt, errorCode, errorMessage, provider, timeline })
  }
  const entries = await sql<{ email: string; reason: string; note: string; messageId: string }[]>`
    select email, reason::text, note, message_id from app.suppressions
    where organisation_id = core.decode_id('org', ${organisation.id})
    union all
    select email, 'everyone', note, message_id from app.hard_bounces
    where email like ${`%@${domain}`}
    order by 1, 2`
  const suppressions = entries.map(({ messageId, ...entry }) => ({
    ...entry,
    place: places.get(messageId),
  }))
  return JSON.parse(JSON.stringify({ states, suppressions }).replaceAll(domain, 'domain.example'))
}

t.test(
  'callbacks in any order, repeated, from four connections: the result is the same',
  async (t) => {
    const [ordered, mixed] = [await sendAll('ordered.example'), await sendAll('mixed.example')]
    const inOrder = eventsOf(ordered)
    t.equal(inOrder.length, EVENTS)
    const statuses = await report(inOrder.map((event) => callbackOf(event)))

    const seed = randomUUID()
    t.comment(`seed ${seed}`)
    const bodies = shuffled(
      eventsOf(mixed).flatMap((event) => {
        const body = callbackOf(event)
        return [body, body, callbackOf(event)]
      }),
      seed,
    )
    const lanes = Array.from({ length: CONNECTIONS }, (_, lane) =>
      bodies.filter((_, place) => place % CONNECTIONS === lane),
    )
    statuses.push(...(await Promise.all(lanes.map(report))).flat())
    t.equal(statuses.length, 4 * EVENTS)
    t.ok(statuses.every((status) => status === 200))

    const expected = await outcomeOf(ordered)
    t.strictSame(await outcomeOf(mixed), expected)

    const counts: Record<string, number> = {}
    for (const { status } of expected.states) counts[status] = (counts[status] ?? 0) + 1
    for (const status of ['sent', 'delivered', 'bounced', 'complained', 'failed']) {
      t.ok((counts[status] ?? 0) > 15, `${counts[status]} are ${status}`)
    }
    t.ok(expected.suppressions.length > 100)
  },
)
