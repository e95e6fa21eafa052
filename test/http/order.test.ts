import t from 'tap'
import type { Code } from '../../src/errors.ts'
import { createDatabase, traces } from '../fixtures/database.ts'
import {
  anEmail,
  anSms,
  errorAs,
  errorOf,
  get,
  isRefused,
  post,
  request,
} from '../fixtures/http.ts'
import {
  createOrganisation,
  holdSecond,
  liftRate,
  type TestOrganisation,
} from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

/** The kinds of requests: a single send or a batch item of either channel, or a suppression. */
type Kind = 'a single send' | 'a batch' | 'an SMS' | 'a batch of SMS' | 'a suppression'

/** A request that obstacles change. */
type Attempt = {
  organisation: TestOrganisation
  kind: Kind
  key: string
  headers: Record<string, string>
  item: Record<string, unknown>
  top: Record<string, unknown>
  raw: string | null
  /** Whether its key was admitted before, so that a single send is admitted and accepted in one round trip. */
  isKnown: boolean
}

const paths = {
  'a single send': '/v1/emails',
  'a batch': '/v1/emails/batch',
  'an SMS': '/v1/sms',
  'a batch of SMS': '/v1/sms/batch',
  'a suppression': '/v1/suppressions',
}

const lists: Partial<Record<Kind, string>> = { 'a batch': 'emails', 'a batch of SMS': 'messages' }

const send = ({ kind, key, headers, item, top, raw }: Attempt) => {
  const list = lists[kind]
  const body = list ? { [list]: [item], ...top } : { ...item, ...top }
  return post(base + paths[kind], key, raw ?? body, headers)
}

const itemOf = (kind: Kind, { domain }: TestOrganisation): Record<string, unknown> => {
  if (kind === 'a suppression') return { email: 'ann@c.example' }
  return kind.endsWith('SMS') ? anSms() : anEmail(domain)
}

/** Has the service admit a key. */
async function makeKnown(key: string) {
  const { headers } = await get(`${base}/v1/usage`, key)
  if (!headers.get('x-ratelimit-limit')) throw new Error('the key was not admitted')
}

/** Returns a valid request. */
async function anAttempt(kind: Kind, { isKnown = false } = {}): Promise<Attempt> {
  const organisation = await createOrganisation(sql)
  await liftRate(sql, organisation)
  if (isKnown) await makeKnown(organisation.liveKey)
  return {
    organisation,
    kind,
    key: organisation.liveKey,
    headers: {},
    item: itemOf(kind, organisation),
    top: {},
    raw: null,
    isKnown,
  }
}

const FIELDS: Partial<Record<Code, Record<string, string[]>>> = {
  validation_error: { attachment: ['unknown field'] },
  recipient_suppressed: { to: ['delivered@sandbox.postgram.test: manual'] },
}

/** The error codes in their documented order (src/docs/api.md#order-of-errors), each with a way to cause it. */
const conditions: [Code, (attempt: Attempt) => unknown][] = [
  [
    'unauthorized',
    async (attempt) => {
      if (attempt.isKnown) await sql`select ops.revoke_api_key(${attempt.key})`
      else attempt.key = `sk_live_${'0'.repeat(64)}`
    },
  ],
  ['rate_limited', ({ organisation }) => holdSecond(sql, organisation, 100)],
  ['org_suspended', ({ organisation: { id } }) => sql`select ops.suspend(${id}, 'did not pay')`],
  [
    'insufficient_scope',
    async (attempt) => {
      const [row] = await sql`
        select ops.create_api_key(${attempt.organisation.id}, 'live', '{read}') as key`
      attempt.key = row?.key
      if (attempt.isKnown) await makeKnown(attempt.key)
    },
  ],
  [
    'invalid_json',
    (attempt) => {
      attempt.raw = '{'
    },
  ],
  [
    'validation_error',
    (attempt) => {
      attempt.top = { attachment: [] }
    },
  ],
  [
    'idempotency_conflict',
    async (attempt) => {
      attempt.headers = { 'Idempotency-Key': 'taken' }
      const [other] = Object.keys(attempt.item).slice(-1)
      const item = { ...attempt.item, [String(other)]: 'another@c.example' }
      const first = await send({ ...attempt, key: attempt.organisation.liveKey, item })
      if (first.status >= 300) throw new Error(first.text)
    },
  ],
  ['org_paused', ({ organisation: { id } }) => sql`select ops.pause(${id}, 'complaints')`],
  [
    'domain_not_verified',
    (attempt) => {
      attempt.item = { ...attempt.item, from: 'hello@elsewhere.example' }
    },
  ],
  [
    'recipient_suppressed',
    ({ organisation: { id } }) => sql`
      insert into app.suppressions (id, organisation_id, email, reason)
      values (gen_random_uuid(), core.decode_id('org', ${id}), 'delivered@sandbox.postgram.test',
        'manual')`,
  ],
  [
    'plan_allowance_exceeded',
    ({ organisation: { id } }) => sql`
      update app.allowances set emails_used = 1000000
      where organisation_id = core.decode_id('org', ${id})`,
  ],
  [
    'insufficient_credits',
    ({ organisation: { id } }) => sql`
      update app.allowances set sms_used = 100
      where organisation_id = core.decode_id('org', ${id})`,
  ],
]

const position = (code: Code) => conditions.findIndex(([known]) => known === code)
// Obstacles that exclude each other: an unknown key and anything of the organisation, two states, two kinds
// of invalid bodies.
const isPossible = (first: Code, second: Code) => {
  if (first === 'unauthorized') return ['invalid_json', 'validation_error'].includes(second)
  if (first === 'org_suspended') return second !== 'org_paused'
  return !(first === 'invalid_json' && second === 'validation_error')
}

const pairs = conditions.flatMap(([first], place) =>
  conditions
    .slice(place + 1)
    .filter(([second]) => isPossible(first, second))
    .map(([second]): [Code, Code] => [first, second]),
)

/** The codes that apply to a kind; those after idempotency_conflict apply to sends alone. */
const isFor = (kind: Kind, code: Code) => {
  if (position(code) <= position('idempotency_conflict')) return true
  if (kind === 'a suppression') return false
  const isOfSms = code === 'insufficient_credits'
  return code === 'org_paused' || isOfSms === kind.endsWith('SMS')
}

const cases = (Object.keys(paths) as Kind[]).flatMap((kind) => [
  { kind, isKnown: false, title: kind },
  { kind, isKnown: true, title: `${kind} of a key admitted before` },
])
for (const { kind, isKnown, title } of cases) {
  t.test(`${title}: is refused for the first failed check`, async (t) => {
    for (const [first, second] of pairs) {
      if (!isFor(kind, first) || !isFor(kind, second)) continue
      const attempt = await anAttempt(kind, { isKnown })
      // The first use of the Idempotency-Key must succeed, and a key be admitted, before the other obstacles.
      const isInOrder = first === 'idempotency_conflict'
      for (const code of isInOrder ? [first, second] : [second, first]) {
        await conditions[position(code)]?.[1](attempt)
      }
      const before = await traces(sql)
      const response = await send(attempt)
      const name = `${first} before ${second}`
      const isOfItem = kind in lists && position(first) > position('org_paused')
      if (isOfItem) {
        const { error: actual } = response.json.results[0]
        const error = first in FIELDS ? errorOf(first, FIELDS[first]) : errorAs(first, actual)
        const results = [{ index: 0, ok: false, error }]
        t.strictSame(
          { status: response.status, json: response.json },
          { status: 200, json: { results } },
          name,
        )
      } else {
        isRefused(t, response, first, FIELDS[first], { name })
      }
      t.strictSame(await traces(sql), before, `${name}, and nothing is stored`)
    }
  })
}

t.test(
  'a request without a body is refused for its key, rate, state and scope first',
  async (t) => {
    const last: [method: string, path: string, code: Code, fields?: Record<string, string[]>][] = [
      ['GET', '/v1/emails/em_1', 'not_found'],
      ['GET', '/v1/emails?mode=dead', 'validation_error', { mode: ['must be one of live, test'] }],
      ['GET', '/v1/sms?page=2', 'validation_error', { page: ['unknown field'] }],
      [
        'GET',
        '/v1/suppressions?limit=0',
        'validation_error',
        { limit: ['must be a number from 1 to 200'] },
      ],
      ['DELETE', '/v1/suppressions/sup_1', 'not_found'],
    ]
    for (const [method, path, code, fields] of last) {
      const scope = method === 'GET' ? 'emails:send' : 'read'
      for (const [first, bringAbout] of conditions.slice(0, position('invalid_json'))) {
        const attempt = await anAttempt('a single send')
        if (first === 'insufficient_scope') {
          const [row] = await sql`
          select ops.create_api_key(${attempt.organisation.id}, 'live', ${[scope]}) as key`
          attempt.key = row?.key
        } else await bringAbout(attempt)
        const response = await request(method, base + path, attempt.key)
        isRefused(t, response, first, undefined, { name: `${method} ${path}: ${first} first` })
      }
      const { key } = await anAttempt('a single send')
      isRefused(t, await request(method, base + path, key), code, fields)
    }
  },
)

t.test('invalid JSON comes before an Idempotency-Key that is too long', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const headers = { 'Idempotency-Key': 'k'.repeat(256) }
  isRefused(t, await post(`${base}/v1/emails`, liveKey, '{', headers), 'invalid_json')
})

t.test('template problems come before domain, suppressions and allowance', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 0 })
  await sql`select ops.suppress_globally('gone@c.example')`
  const email = anEmail('elsewhere.example', {
    to: 'gone@c.example',
    text: undefined,
    templateId: 'tpl_unknown',
  })
  const response = await post(`${base}/v1/emails`, organisation.liveKey, email)
  const fields = { templateId: ['is not a template of this organisation'] }
  isRefused(t, response, 'validation_error', fields)
})

t.test('a replay depends only on key, state and rate, not on other changes since', async (t) => {
  for (const [code, bringAbout] of conditions) {
    if (['invalid_json', 'validation_error', 'idempotency_conflict'].includes(code)) continue
    const attempt = await anAttempt(isFor('an SMS', code) ? 'an SMS' : 'a single send')
    attempt.headers = { 'Idempotency-Key': 'once' }
    const first = await send(attempt)
    t.equal(first.status, 200)
    if (code === 'domain_not_verified') {
      await sql`delete from app.domains where name = ${attempt.organisation.domain}`
    } else {
      await bringAbout(attempt)
    }
    const again = await send(attempt)
    if (position(code) < position('idempotency_conflict')) isRefused(t, again, code)
    else {
      t.strictSame([again.status, again.text], [200, first.text], code)
      t.equal(again.headers.get('idempotent-replayed'), 'true')
    }
  }
})
