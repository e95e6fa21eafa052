import t from 'tap'
import { sendCopies } from '../../src/marketing/send-copies.ts'
import type { AttemptResult } from '../../src/providers/attempt.ts'
import type { OutgoingEmail } from '../../src/providers/email.ts'
import { emailTo } from '../fixtures/providers.ts'
import { links } from '../fixtures/service.ts'

const addresses = (count: number) => Array.from({ length: count }, (_, n) => `r${n}@c.example`)

const toMany = (count: number, settledRecipients: string[] | null = null) =>
  emailTo('', { to: addresses(count), class: 'marketing', settledRecipients })

/** Sends a copy to each `r<n>`, whose attempt has the n-th of these results. */
const sendWith = (attempts: AttemptResult[], settledRecipients: string[] | null = null) =>
  sendCopies(
    toMany(attempts.length, settledRecipients),
    links,
    async ({ recipients: [to = ''] }) => {
      await null
      return attempts[Number(/\d+/.exec(to)?.[0])] ?? { outcome: 'sent' }
    },
  )

const SENT: AttemptResult = { outcome: 'sent' }
const FAILED: AttemptResult = { outcome: 'failed', about: 'message', code: '550', text: 'No.' }
const DEFERRED: AttemptResult = { outcome: 'deferred', code: '421', text: 'Later.' }
const BUSY: AttemptResult = { ...DEFERRED, about: 'provider' }
const LOST: AttemptResult = { outcome: 'ambiguous', text: 'Reset.' }
const LOOKED: AttemptResult = {
  outcome: 'ambiguous',
  text: 'Unknown.',
  ambiguous_since: new Date(0),
}
const [A, B, C, D] = addresses(4)

t.test('sendCopies(): combines the results of several copies', async (t) => {
  const refused = (recipient: string | undefined) => ({ recipient, code: '550', text: 'No.' })
  const cases: [string, AttemptResult[], object][] = [
    ['all taken', [SENT, SENT], { ...SENT, settled_recipients: [A, B], refused: [] }],
    [
      'some refused',
      [SENT, FAILED],
      { ...SENT, settled_recipients: [A, B], refused: [refused(B)] },
    ],
    ['all refused', [FAILED, { ...FAILED, text: 'Nor you.' }], FAILED],
    [
      'one deferred, while the provider takes others',
      [SENT, BUSY],
      { ...DEFERRED, about: 'message', settled_recipients: [A], refused: [] },
    ],
    ['all deferred', [BUSY, BUSY], { ...BUSY, settled_recipients: [], refused: [] }],
    [
      'one refused, one deferred',
      [FAILED, BUSY],
      { ...DEFERRED, about: 'message', settled_recipients: [A], refused: [refused(A)] },
    ],
    [
      'one ambiguous, one deferred',
      [SENT, DEFERRED, LOST, FAILED],
      { ...LOST, about: 'message', settled_recipients: [A, D], refused: [refused(D)] },
    ],
    ['one still ambiguous', [DEFERRED, LOOKED], { ...LOOKED, settled_recipients: [], refused: [] }],
    [
      'one still ambiguous, one ambiguous',
      [LOOKED, LOST],
      { ...LOST, settled_recipients: [], refused: [] },
    ],
  ]
  for (const [name, attempts, outcome] of cases) {
    t.strictSame(await sendWith(attempts), outcome, name)
  }
})

t.test('sendCopies(): counts the recipients that earlier attempts settled', async (t) => {
  t.strictSame(await sendWith([SENT, FAILED, SENT], [A ?? '', C ?? '']), {
    outcome: 'sent',
    settled_recipients: [B],
    refused: [{ recipient: B, code: '550', text: 'No.' }],
  })
  t.strictSame(await sendWith([SENT, SENT], [A ?? '', B ?? '']), {
    outcome: 'sent',
    settled_recipients: [],
    refused: [],
  })
})

t.test('sendCopies(): an email to one recipient has the result of its attempt', async (t) => {
  const refused = [{ recipient: 'b@c.example' }]
  const email = emailTo('a@c.example', { class: 'marketing' })
  for (const attempt of [FAILED, LOOKED, { ...SENT, refused }]) {
    t.equal(await sendCopies(email, links, async () => attempt), attempt)
  }
})

t.test('sendCopies(): ten copies are in progress at a time, each once', async (t) => {
  const begun: OutgoingEmail[] = []
  let underWay = 0
  let most = 0
  const outcome = await sendCopies(toMany(50), links, async (copy) => {
    begun.push(copy)
    most = Math.max(most, ++underWay)
    await new Promise(setImmediate)
    underWay -= 1
    return SENT
  })
  t.equal(most, 10)
  t.same(
    begun.map(({ copy }) => copy),
    Array.from({ length: 50 }, (_, place) => place + 1),
  )
  t.same(outcome.settled_recipients?.toSorted(), addresses(50).toSorted())
})

t.test('sendCopies(): starts no further copy after one that is not settled', async (t) => {
  for (const attempt of [DEFERRED, LOST, LOOKED]) {
    const begun: (number | null)[] = []
    const { promise: answer, resolve: settle } = Promise.withResolvers<void>()
    const underWay = sendCopies(toMany(50), links, async ({ copy }) => {
      begun.push(copy)
      if (copy === 4) return attempt
      await answer
      return SENT
    })
    await new Promise(setImmediate)
    settle()
    t.match(await underWay, { ...attempt, settled_recipients: Array(9).fill(/@/) })
    t.same(
      begun,
      Array.from({ length: 10 }, (_, place) => place + 1),
    )
  }
})

t.test('sendCopies(): stays ambiguous while copies were not reached', async (t) => {
  const ambiguousSince = new Date(0)
  const again = (count: number) =>
    sendCopies({ ...toMany(count), ambiguousSince }, links, async ({ copy }) => {
      await null
      return copy === 1 ? DEFERRED : SENT
    })
  t.match(await again(50), {
    outcome: 'ambiguous',
    ambiguous_since: ambiguousSince,
    text: 'Later.',
  })
  t.match(await again(10), DEFERRED, 'but not when all were reached')
})
