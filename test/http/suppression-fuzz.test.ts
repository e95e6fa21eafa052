import fc from 'fast-check'
import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'
import { type Answer, get, post, STATUS } from '../fixtures/http.ts'
import { createOrganisation, liftRate, listOf } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'
import { anyCharacter } from '../fixtures/strings.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { liveKey } = organisation
await liftRate(sql, organisation)
const suppressions = `${base}/v1/suppressions`

const RUNS = 1000
const AT_A_TIME = 50

const address = fc.oneof(
  fc.emailAddress(),
  fc.constantFrom('ann@c.example', 'ANN@c.example', 'a@b', '%@c.example', 'Ann <a@c.example>'),
  fc.string({ unit: anyCharacter, maxLength: 300 }),
)
const value = fc.oneof(address, fc.jsonValue({ stringUnit: 'binary' }))
const body = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .record(
        { email: fc.oneof({ weight: 4, arbitrary: address }, value), reason: value, note: value },
        { requiredKeys: ['email'] },
      )
      .map((fields) => JSON.stringify(fields)),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({
        email: address,
        reason: fc.constantFrom('manual', 'unsubscribe'),
        note: fc.string({ unit: 'grapheme' }),
      })
      .map((fields) => JSON.stringify(fields)),
  },
  { weight: 1, arbitrary: fc.json({ stringUnit: 'binary' }) },
  { weight: 1, arbitrary: fc.string({ unit: anyCharacter }) },
)

/** Returns what is wrong with a response, or null. */
function faultOf({ status, json, headers }: Answer): string | null {
  if (!headers.get('x-request-id')) return 'no x-request-id'
  if (status < 300) return null
  const { code, docs } = json?.error ?? {}
  if (STATUS[code as keyof typeof STATUS] !== status || status >= 500) return `${status} ${code}`
  return docs === `https://postgram.test/docs/errors#${code}` ? null : 'no proper envelope'
}

t.test(
  `POST /v1/suppressions: ${RUNS} random bodies are added or refused, never 500`,
  async (t) => {
    const seed = Math.trunc(Math.random() * 2 ** 31)
    const bodies = fc.sample(body, { numRuns: RUNS, seed })
    const faults: string[] = []
    const made: Answer[] = []
    for (let first = 0; first < RUNS; first += AT_A_TIME) {
      const some = bodies.slice(first, first + AT_A_TIME)
      const responses = await Promise.all(some.map((one) => post(suppressions, liveKey, one)))
      for (const [n, response] of responses.entries()) {
        const fault = faultOf(response)
        if (fault)
          faults.push(`${fault}: ${some[n]?.slice(0, 500)} -> ${response.text.slice(0, 500)}`)
        if (response.status === 201) made.push(response)
      }
    }
    t.strictSame(faults, [], `with seed ${seed}`)
    t.ok(made.length > 10 && made.length < RUNS, 'some were added and some were not')
    t.strictSame(
      (await listOf(sql, organisation)).map(({ email }) => email).sort(),
      made.map(({ json }) => json.email).sort(),
      `refused bodies store nothing, with seed ${seed}`,
    )
    for (const { json } of made.slice(0, 50)) {
      const found = await get(`${suppressions}?email=${encodeURIComponent(json.email)}`, liveKey)
      const { id, email, createdAt } = json
      t.match(
        found.json.data.find((entry: { id: string }) => entry.id === id),
        // A later body may have changed unsubscribe to manual, with its own note.
        { id, email, createdAt },
        `${json.email} is found by its address`,
      )
    }
  },
)

t.test('GET /v1/suppressions: random queries are listed or refused, never 500', async (t) => {
  const seed = Math.trunc(Math.random() * 2 ** 31)
  const name = fc.oneof(
    fc.constantFrom('email', 'limit', 'cursor'),
    fc.string({ unit: anyCharacter }),
  )
  const text = fc.oneof(
    fc.constantFrom(
      '50',
      '200',
      '0',
      'cur_01h455vb4pex5vsknk084sn02q',
      '\\',
      '%',
      "'",
      '\\%',
      '$1',
    ),
    fc.string({ unit: anyCharacter }),
  )
  const encoded = fc
    .tuple(name, text)
    .map(([key, one]) => new URLSearchParams([[key, one]]).toString())
  const raw = fc.string({ unit: fc.constantFrom(...'%&=+?abc01_\\;/', '%00', '%ff', '%e2%82') })
  const query = fc.array(fc.oneof({ weight: 3, arbitrary: encoded }, raw), { maxLength: 3 })
  const queries = fc.sample(query, { numRuns: 500, seed }).map((parts) => parts.join('&'))
  const faults: string[] = []
  let listed = 0
  for (const one of queries) {
    const response = await get(`${suppressions}?${one}`, liveKey)
    const fault = faultOf(response)
    if (fault) faults.push(`${fault}: ${one}`)
    if (response.status === 200) listed += 1
  }
  t.strictSame(faults, [], `with seed ${seed}`)
  t.ok(listed > 20 && listed < 500, `${listed} were listed`)
})
