import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, get, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })

const MB = 1024 * 1024
const many = (text: string, bytes: number) => text.repeat(Math.floor(bytes / text.length))
const unusual = Array(50).fill(`${'"" '.repeat(33)}x <a@b.co>`)
const names = { to: unusual, cc: unusual, bcc: unusual }

/** Bodies that could block the event loop for seconds, and their problems. */
const hard: Record<string, [path: string, body: string, problem: string | null]> = {
  'nested brackets': ['', many('[', MB), 'must be nested at most 20 levels deep'],
  'nested objects': ['', many('{"a":', MB), 'must be nested at most 20 levels deep'],
  'nested brackets in an item': [
    '/batch',
    `{"emails":[${many('[', 3 * MB)}]}`,
    'must be nested at most 20 levels deep',
  ],
  'brackets side by side': [
    '',
    `[${many('[],', MB)}1]`,
    'must have at most 1000 values but has 699051',
  ],
  'many keys': ['', `{${many('"a":1,', MB)}"b":1}`, 'must have at most 1000 values but has 174763'],
  'many keys in an item': [
    '/batch',
    `{"emails":[{${many('"a":1,', 3 * MB)}"b":1}]}`,
    'must have at most 500000 values but has 524291',
  ],
  'many items': ['/batch', `{"emails":[${many('1,', 512 * 1024)}1]}`, null],
  'unusual names': [
    '/batch',
    JSON.stringify({ emails: Array(30).fill(anEmail('b.co', names)) }),
    null,
  ],
}

t.test('bodies that are slow to parse are refused and nothing is stored', async (t) => {
  const { liveKey } = await createOrganisation(sql)
  const before = await traces(sql)
  for (const [name, [path, body, problem]] of Object.entries(hard)) {
    if (problem === null) continue
    const response = await post(`${base}/v1/emails${path}`, liveKey, body)
    isRefused(t, response, 'validation_error', { _: [problem] }, { name })
  }
  t.strictSame(await traces(sql), before)
})

t.test(
  'while ten keys post hard bodies, another organisation sends and health is reported',
  async (t) => {
    const victim = await createOrganisation(sql)
    await liftRate(sql, victim)
    const attackers = await Promise.all(Object.keys(hard).map(() => createOrganisation(sql)))
    let pending = 0
    let sentMeanwhile = 0
    const attacks = Object.values(hard).map(async ([path, body], n) => {
      const key = attackers[n]?.liveKey ?? null
      for (let round = 0; round < 2; round++) {
        pending += 1
        const { status } = await post(`${base}/v1/emails${path}`, key, body)
        pending -= 1
        t.ok([200, 422].includes(status), `${status}`)
      }
    })
    const attack = Promise.all(attacks)
    let isOver = false
    void attack.then(() => {
      isOver = true
    })
    while (!isOver) {
      t.equal((await post(`${base}/v1/emails`, victim.liveKey, anEmail(victim.domain))).status, 200)
      t.equal((await get(`${base}/healthz`, null)).status, 200)
      if (pending > 0) sentMeanwhile += 1
    }
    await attack
    t.ok(sentMeanwhile > 0)
  },
)

t.test(
  'an email with 150 recipients of unusual names and everything else is accepted',
  async (t) => {
    const { liveKey, domain } = await createOrganisation(sql)
    const full = anEmail(domain, {
      ...names,
      headers: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`X-${n}`, 'x'])),
      tags: Array(10).fill('t'),
    })
    t.equal((await post(`${base}/v1/emails`, liveKey, full)).status, 200)
  },
)
