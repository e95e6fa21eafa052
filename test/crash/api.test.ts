import t from 'tap'
import { createDatabase, untilLocked } from '../fixtures/database.ts'
import { type Answer, anEmail, post } from '../fixtures/http.ts'
import { idsOf, make, startCallers } from '../fixtures/load.ts'
import {
  createOrganisation,
  createPayer,
  ledgerOf,
  liftRate,
  moneyOf,
  reject,
  smsOf,
  type TestOrganisation,
  unbalancedLedgers,
} from '../fixtures/organisation.ts'
import { spawnService } from '../fixtures/processes.ts'
import { until } from '../fixtures/time.ts'

const { url, sql } = await createDatabase()

type Counts = Record<string, number>

const one = async (query: Promise<readonly Counts[]>) => (await query)[0] as Counts

/** How often the subject of a message carries each mark. */
async function messagesByMark(): Promise<Map<string, number>> {
  const rows = await sql<{ mark: string; messages: number }[]>`
    select split_part(m.subject, ' ', 1) as mark, count(*)::integer as messages
    from app.messages m group by 1`
  return new Map(rows.map(({ mark, messages }) => [mark, messages]))
}

t.test('API killed under load: each call took effect in full or not at all', async (t) => {
  const api = await spawnService(`${url}?application_name=doomed`, 'api')
  const organisations = await Promise.all(Array.from({ length: 4 }, () => createOrganisation(sql)))
  for (const organisation of organisations) await liftRate(sql, organisation)
  const callers = startCallers(api.base, organisations, {
    callers: 48,
    to: 'delivered@sandbox.postgram.test',
  })
  await until('load', async () => callers.answered() > 1000)
  await api.end('SIGKILL')
  await callers.stop()
  // The server may still be committing the last calls of the killed process.
  await until('its last transactions to end', async () => {
    const open = await sql`
      select from pg_stat_activity
      where datname = current_database() and application_name = 'doomed'`
    return open.length === 0
  })

  const { attempts } = callers
  const answered = attempts.filter(({ answer }) => answer)
  const unanswered = attempts.filter(({ answer }) => !answer)
  t.comment(`${answered.length} calls answered, ${unanswered.length} cut off`)
  t.ok(unanswered.length > 0, 'calls were under way')
  t.ok(answered.every(({ answer }) => answer?.status === 200))

  const ids = answered.flatMap(idsOf)
  t.equal(new Set(ids).size, ids.length)
  t.match(
    await one(sql`
      select count(*)::integer as found
      from unnest(${ids}::text[]) i
      join app.messages m on m.id = core.decode_id('em', i) and m.status = 'queued'
      join app.bodies b on b.message_id = m.id
      join core.message_jobs() j on j.message_id = m.id`),
    { found: ids.length },
    'each message with a 200 response is there, with its job',
  )

  const accepted = await messagesByMark()
  for (const { mark, messages, answer } of attempts) {
    const found = accepted.get(mark) ?? 0
    if (found !== messages && (answer || found !== 0)) t.fail(`${found} of ${messages} are there`)
  }
  const committed = unanswered.filter(({ mark }) => accepted.has(mark)).length
  t.comment(`${committed} of the calls that were cut off had been committed`)

  const { messages, bodies, jobs, jobMessages, keys } = await one(sql`
    select
      (select count(*)::integer from app.messages) as messages,
      (select count(*)::integer from app.bodies b join app.messages m on m.id = b.message_id) as bodies,
      (select count(*)::integer from core.message_jobs()) as jobs,
      (select count(distinct m.id)::integer from core.message_jobs() j
        join app.messages m on m.id = j.message_id) as job_messages,
      (select count(*)::integer from app.idempotency_keys) as keys`)
  t.same({ bodies, jobs, jobMessages }, { bodies: messages, jobs: messages, jobMessages: messages })
  t.equal(keys, answered.length + committed, 'a stored answer for each call')
  const [stored] = await sql`
    select count(*)::integer as ids, count(m.id)::integer as messages
    from app.idempotency_keys k
    cross join lateral regexp_matches(k.body, 'em_[0-9a-z]{26}', 'g') as i (id)
    left join app.messages m on m.id = core.decode_id('em', i.id[1])`
  t.same(stored, { ids: messages, messages }, 'which names messages that are there')
  const usage = await sql`
    select a.emails_used as used, a.messages_accepted::integer as accepted,
      sum(m.recipients)::integer as recipients, count(*)::integer as messages
    from app.allowances a join app.messages m using (organisation_id)
    group by a.organisation_id, a.emails_used, a.messages_accepted`
  t.equal(usage.length, organisations.length)
  for (const { used, accepted, recipients, messages } of usage) {
    t.same({ used, accepted }, { used: recipients, accepted: messages })
  }

  const restarted = await spawnService(url, 'api')
  const withKey = attempts.filter(({ key }) => key !== null)
  for (const attempt of [...withKey.filter(({ answer }) => !answer), ...withKey.slice(0, 100)]) {
    const answer = await make(restarted.base, attempt)
    t.equal(answer.status, 200)
    const wasThere = accepted.has(attempt.mark)
    t.equal(answer.headers.get('Idempotent-Replayed'), wasThere ? 'true' : null)
    if (attempt.answer) t.equal(answer.text, attempt.answer.text)
  }
  const final = await messagesByMark()
  t.ok(
    withKey.every(({ mark, messages }) => final.get(mark) === messages),
    'each key has exactly its messages',
  )
  t.equal(await restarted.end('SIGTERM'), 0)
})

t.test('API killed before a commit: the retry of the call gets the stored response', async (t) => {
  const api = await spawnService(url, 'api')
  const restarted = await spawnService(url, 'api')
  // The service waits 3 s for a lock; a busy machine may need longer for the steps below.
  await sql`alter function api.accept_emails set lock_timeout = 0`
  const organisation = await createOrganisation(sql)
  const calls = Array.from({ length: 20 }, (_, place) => {
    const key = `held ${place}`
    const email = anEmail(organisation.domain, { subject: key })
    return (base: string) =>
      post(`${base}/v1/emails`, organisation.liveKey, email, { 'Idempotency-Key': key })
  })

  const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const holding = sql.begin(async (tx) => {
    await tx`lock table app.bodies in exclusive mode`
    held()
    await released
  })
  await isHeld
  const cutOff = Promise.allSettled(calls.map((call) => call(api.base)))
  await untilLocked(sql, 1, 'accept_emails')
  await api.end('SIGKILL')
  t.ok((await cutOff).every(({ status }) => status === 'rejected'))

  const retries = Promise.all(calls.map((call) => call(restarted.base)))
  await untilLocked(sql, 2, 'accept_emails')
  release()
  await holding
  const answers = await retries
  t.ok(answers.every(({ status }) => status === 200))
  t.ok(
    answers.some(({ headers }) => headers.get('Idempotent-Replayed') === 'true'),
    'the call that the killed process began was committed',
  )
  const found = await messagesByMark()
  t.equal(found.get('held'), calls.length, 'and nothing was accepted twice')
  const used = await sql`
    select emails_used from app.allowances
    where organisation_id = core.decode_id('org', ${organisation.id})`
  t.equal(used[0]?.emailsUsed, calls.length)
  t.equal(await restarted.end('SIGTERM'), 0)
})

/** At least; more on a machine on which the steps meanwhile take longer. */
const SENDS = 500
const CALLERS = 20

/** Every third call is a batch of three; each call has its own key. */
const sendSms = (base: string, { liveKey }: TestOrganisation, n: number): Promise<Answer> => {
  const headers = { 'Idempotency-Key': `send ${n}` }
  return n % 3 === 0
    ? post(`${base}/v1/sms/batch`, liveKey, { messages: [smsOf(1), smsOf(1), smsOf(1)] }, headers)
    : post(`${base}/v1/sms`, liveKey, smsOf(1), headers)
}

const smsIdsOf = ({ json }: Answer): string[] =>
  (json.results ?? [{ data: json }]).flatMap(
    ({ data }: { data?: { id?: string } }) => data?.id ?? [],
  )

t.test('one of two API processes killed: 300 credits are spent exactly', async (t) => {
  const organisation = await createPayer(sql, { included: 30, credits: 270 })
  const [doomed, survivor] = await Promise.all([spawnService(url, 'api'), spawnService(url, 'api')])
  // The service waits 3 s for a lock; a busy machine may need longer for the steps below.
  await sql`alter function api.accept_sms set lock_timeout = 0`
  const accepted = new Map<number, string[]>()
  const cutOff: number[] = []
  const refunds: Promise<number>[] = []
  let isKilled = false
  let underWay = 0

  const caller = async (first: number) => {
    for (let n = first; n < SENDS || !isKilled; n += CALLERS) {
      const isDoomed = n % 2 === 0 && !isKilled
      if (isDoomed) underWay += 1
      const answer = await sendSms(isDoomed ? doomed.base : survivor.base, organisation, n).catch(
        () => null,
      )
      if (isDoomed) underWay -= 1
      if (answer === null) cutOff.push(n)
      if (answer?.status !== 200) continue
      accepted.set(n, smsIdsOf(answer))
      if (n % 20 === 1) refunds.push(reject(sql, accepted.get(n) ?? []))
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, first) => caller(first)))
  await until('sends to be answered', async () => accepted.size > 40)
  await sql.begin(async (tx) => {
    // No call gets a response while the organisation is locked.
    await tx`
      select from app.allowances
      where organisation_id = core.decode_id('org', ${organisation.id}) for update`
    await until('all callers to wait', async () => underWay === CALLERS / 2)
    await untilLocked(sql, 2, 'accept_sms')
    isKilled = true
    await doomed.end('SIGKILL')
  })
  await callers
  t.equal(cutOff.length, CALLERS / 2)

  // Their callers retry: committed calls are replayed, and nothing is paid twice.
  for (const n of cutOff) {
    const answer = await sendSms(survivor.base, organisation, n)
    if (answer.status === 200) accepted.set(n, smsIdsOf(answer))
  }
  // Refunds may have followed the last send, so the remaining credits are spent as well.
  for (let n = -1; ; n -= 3) {
    const answer = await sendSms(survivor.base, organisation, n)
    if (answer.status !== 200) break
    accepted.set(n, smsIdsOf(answer))
  }
  const refunded = (await Promise.all(refunds)).reduce((sum, count) => sum + count, 0)
  const rest = await moneyOf(sql, organisation)
  const ids = [...accepted.values()].flat()
  t.equal(new Set(ids).size, ids.length)
  t.equal(ids.length, rest.accepted, 'every message that was paid has been answered')
  t.ok(refunded > 0)
  t.equal(ids.length - refunded, 300)
  t.match(rest, { smsUsed: 30, smsCredits: 0 })
  const entries = await ledgerOf(sql, organisation)
  t.equal(entries.filter(({ kind }) => kind === 'sms').length, ids.length)
  t.equal(entries.filter(({ kind }) => kind === 'refund').length, refunded)
  t.same(await unbalancedLedgers(sql), [])
  t.equal(await survivor.end('SIGTERM'), 0)
})
