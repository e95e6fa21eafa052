import t from 'tap'
import { caller } from '../../src/db/call.ts'
import { signInAs } from '../fixtures/dashboard.ts'
import { createDatabase } from '../fixtures/database.ts'
import { anEmail, anSms, post } from '../fixtures/http.ts'
import { createOrganisation, grant, type TestOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { sql, url } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const call = caller(sql)

const pathOf = ({ id }: TestOrganisation) => `/dashboard/${id}/usage`

const viewerOf = ({ id }: TestOrganisation) =>
  signInAs(sql, base, { organisation: id, role: 'viewer' })

/** Lets the current period of an organisation begin this many days ago. */
async function beginPeriod({ id }: TestOrganisation, days: number) {
  await sql`
    update app.organisations o set created_at = now() - make_interval(days => ${days})
    where o.id = core.decode_id('org', ${id})`
  await sql`
    update app.allowances a set (period_start, period_end) = (select p.* from core.period_at(o.created_at, now()) p)
    from app.organisations o
    where o.id = a.organisation_id and o.id = core.decode_id('org', ${id})`
}

const volume = (
  { id }: TestOrganisation,
  {
    ago,
    channel,
    accepted,
    units,
  }: Record<'ago' | 'accepted' | 'units', number> & { channel: string },
) => sql`
  insert into app.daily_volume (day, organisation_id, channel, class, accepted, sent, delivered, bounced, complained,
    failed, expired, rejected, units)
  values ((now() at time zone 'UTC')::date - ${ago}::integer, core.decode_id('org', ${id}), ${channel}, 'transactional',
    ${accepted}, 0, 0, 0, 0, 0, 0, 0, ${units})`

/** The rows of a table of the page, as texts of the cells. */
function rowsOf(html: string, label: string): string[][] {
  const [, table = ''] =
    new RegExp(`<table aria-label="${label}">(.*?)</table>`, 's').exec(html) ?? []
  const rows = table.split('<tr>').slice(2)
  return rows.map((row) =>
    row
      .split('<td')
      .slice(1)
      .map((cell) =>
        `<td${cell}`
          .replace(/<[^>]*>/g, '')
          .replaceAll('\u202f', ' ')
          .trim(),
      ),
  )
}

const dayOf = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)

t.test(
  'usage counts recipients and segments of accepted messages, and shows what is left',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 1000, smsIncluded: 3 })
    await grant(sql, organisation, 10)
    const { liveKey, testKey, domain } = organisation
    const to = ['a@x.example', 'b@x.example', 'c@x.example']
    await post(`${base}/v1/emails`, liveKey, anEmail(domain, { to, tags: ['one', 'two'] }))
    await post(`${base}/v1/emails`, liveKey, anEmail(domain))
    await post(`${base}/v1/emails`, testKey, anEmail(domain))
    await post(`${base}/v1/sms`, liveKey, anSms({ body: 'x'.repeat(300) }))
    await post(`${base}/v1/sms`, liveKey, anSms({ body: 'x'.repeat(300) }))
    t.equal(await call('sum_status_changes', {}), 4)
    const page = await (await viewerOf(organisation)).get(pathOf(organisation))
    t.match(page.text, /Plan plan-1000-3, R 0 a month\. The period began on/)
    t.same(rowsOf(page.html, 'Current period'), [
      ['Email recipients', '1 000', '4', '996'],
      ['SMS segments', '3', '3', '0'],
      ['Domains', '100', '1', '99'],
    ])
    t.match(page.text, 'SMS credits left: 9.')
    t.same(rowsOf(page.html, 'Email recipients by day'), [[dayOf(0), '4', '996']])
    t.same(rowsOf(page.html, 'SMS segments by day'), [[dayOf(0), '4', '0']])
    const [row] = await sql`
    select units::integer from ops.daily_volume where organisation = ${organisation.id} and tag = 'one'`
    t.match(row, { units: 3 })
  },
)

t.test(
  'usage by day has each day of the period, newest first, and what was left after it',
  async (t) => {
    const organisation = await createOrganisation(sql, { emailsIncluded: 1000, smsIncluded: 50 })
    await beginPeriod(organisation, 3)
    // The first day began before the period: 40 of its 100 emails are not of this period.
    await volume(organisation, { ago: 3, channel: 'email', accepted: 100, units: 100 })
    // Before the migration that added units.
    await volume(organisation, { ago: 1, channel: 'email', accepted: 20, units: 0 })
    await volume(organisation, { ago: 0, channel: 'email', accepted: 5, units: 15 })
    await volume(organisation, { ago: 9, channel: 'email', accepted: 7, units: 7 })
    await volume(organisation, { ago: 2, channel: 'sms', accepted: 10, units: 30 })
    await volume(organisation, { ago: 1, channel: 'sms', accepted: 10, units: 30 })
    await sql`
    update app.allowances a set emails_used = 95, sms_used = 50 where a.organisation_id = core.decode_id('org', ${organisation.id})`
    const page = await (await viewerOf(organisation)).get(pathOf(organisation))
    t.same(rowsOf(page.html, 'Email recipients by day'), [
      [dayOf(0), '15', '905'],
      [dayOf(1), '20', '920'],
      [dayOf(2), '0', '940'],
      [dayOf(3), '100', '940'],
    ])
    t.same(rowsOf(page.html, 'SMS segments by day'), [
      [dayOf(0), '0', '0'],
      [dayOf(1), '30', '0'],
      [dayOf(2), '30', '20'],
      [dayOf(3), '0', '50'],
    ])
    t.equal(page.html.split('<rect class="tone-accent" x=').length - 1, 5)
    t.notMatch(page.html, ' style=')
  },
)

t.test('past statements are shown newest first, 50 to a page', async (t) => {
  const organisation = await createOrganisation(sql)
  const browser = await viewerOf(organisation)
  t.match((await browser.get(pathOf(organisation))).text, /No period has ended yet/)
  await sql`
    insert into app.closed_periods (organisation_id, period_start, period_end, plan_id, plan_name, price_rand,
      emails_included, emails_used, sms_included, sms_used, sms_credits)
    select core.decode_id('org', ${organisation.id}), p.at, p.at + interval '1 month', 'x', '<script>"' || p.n, 100 + p.n, 1000, p.n, 50, 2, 3
    from (select n, timestamptz '2020-01-01Z' + make_interval(months => n) as at from generate_series(0, 59) n) p`
  const first = await browser.get(pathOf(organisation))
  const rows = rowsOf(first.html, 'Past statements')
  t.equal(rows.length, 50)
  t.same(rows[0], [
    '2024-12-01 00:00',
    '2025-01-01 00:00',
    '&lt;script>&quot;59',
    'R 159',
    '59 of 1 000',
    '2 of 50',
    '3',
  ])
  const [, next = ''] = /href="([^"]*[?]statements=[^"#]+)#statements"/.exec(first.html) ?? []
  const second = rowsOf((await browser.get(next)).html, 'Past statements')
  t.match([second.length, second[0]?.[4], second.at(-1)?.[4]], [10, '9 of 1 000', '0 of 1 000'])
  t.match(await browser.get(`${pathOf(organisation)}?statements=no+time`), { status: 200 })
})

t.test('usage and statements of another organisation are not shown', async (t) => {
  const organisation = await createOrganisation(sql)
  const other = await createOrganisation(sql)
  await sql`
    insert into app.closed_periods
    values (core.decode_id('org', ${other.id}), '2020-01-01Z', '2020-02-01Z', 'x', 'secret plan', 1, 1, 1, 1, 1, 1)`
  const browser = await viewerOf(organisation)
  t.match(await browser.get(pathOf(other)), { status: 404 })
  t.notMatch((await browser.get(pathOf(organisation))).text, 'secret plan')
})
