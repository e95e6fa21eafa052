import t from 'tap'
import { createDatabase, meetAt } from '../fixtures/database.ts'
import { type Answer, anEmail, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'

const { url, sql } = await createDatabase()
const [one, two] = await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])
const bases = [one.base, two.base]

t.test(
  '400 concurrent sends over three keys and two processes take exactly an allowance of 100',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 100 })
    const { id, liveKey, domain } = organisation
    await liftRate(sql, organisation)
    const rows = await sql`
    select ops.create_api_key(${id}) as key from generate_series(1, 2)`
    const keys = [liveKey, ...rows.map(({ key }) => key as string)]
    const responses = await meetAt(sql, organisation, 2, () =>
      Promise.all(
        Array.from({ length: 400 }, (_, n) =>
          post(`${bases[n % 2]}/v1/emails`, keys[n % 3] ?? '', anEmail(domain)),
        ),
      ),
    )
    const accepted = responses.filter(({ status }) => status === 200)
    t.equal(accepted.length, 100)
    t.equal(new Set(accepted.map(({ json }) => json.id)).size, 100)
    const [refused, ...others] = responses.filter(({ status }) => status !== 200)
    isRefused(t, refused as Answer, 'plan_allowance_exceeded')
    t.ok(others.every(({ status, text }) => status === 402 && text === refused?.text))
    const [row] = await sql`
    select a.emails_used,
      (select count(*)::integer from app.messages m where m.organisation_id = a.organisation_id) as messages,
      (select sum(core.job_size(payload))::integer from graphile_worker._private_jobs) as jobs
    from app.allowances a where a.organisation_id = core.decode_id('org', ${id})`
    t.strictSame({ ...row }, { emailsUsed: 100, messages: 100, jobs: 100 })
  },
)

t.test('two concurrent sends for the last unit of the allowance: one is accepted', async (t) => {
  for (let round = 0; round < 10; round++) {
    const organisation = await createOrganisation(sql, { emailsIncluded: 1 })
    const responses = await meetAt(sql, organisation, 2, () =>
      Promise.all(
        bases.map((base) =>
          post(`${base}/v1/emails`, organisation.liveKey, anEmail(organisation.domain)),
        ),
      ),
    )
    t.strictSame(responses.map(({ status }) => status).sort(), [200, 402])
  }
})

t.test('concurrent batches and single sends never exceed the allowance', async (t) => {
  const organisation = await createOrganisation(sql, { emailsIncluded: 101 })
  const { id, liveKey, domain } = organisation
  await liftRate(sql, organisation)
  const pair = { to: ['a@c.example', 'b@c.example'] }
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      n % 4 === 0
        ? post(`${bases[n % 2]}/v1/emails`, liveKey, anEmail(domain))
        : post(`${bases[n % 2]}/v1/emails/batch`, liveKey, {
            emails: Array.from({ length: 10 }, () => anEmail(domain, pair)),
          }),
    ),
  )
  const taken = responses.flatMap(({ status, json }) => {
    if (!json.results) return status === 200 ? [1] : []
    return json.results.filter(({ ok }: { ok: boolean }) => ok).map(() => 2)
  })
  const total = taken.reduce((sum, recipients) => sum + recipients, 0)
  const [row] = await sql`
    select a.emails_used, sum(m.recipients)::integer as recipients
    from app.allowances a join app.messages m on m.organisation_id = a.organisation_id
    where a.organisation_id = core.decode_id('org', ${id}) group by a.emails_used`
  t.strictSame({ ...row }, { emailsUsed: total, recipients: total })
  t.equal(
    total,
    101,
    'the allowance is used up: a single send takes the unit that no pair can take',
  )
})
