// "npm run bench": design section 12 for what exists so far, each row beside its naive form in the
// same run. Prints a table and writes bench.json. Figures mean something only as ratios in one run.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { formatTable } from '../../src/table.ts'
import type { LoadPlan, LoadResult } from './load.ts'
import { anEmail, anSms, type Bench, type Channel, measureP, setUp } from './setup.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
const QUEUED = 40_000

type Row = {
  work: string
  measured: string
  naive: string
  ratio: string
  goal: string
  reached: string
}

const here = (file: string) => fileURLToPath(new URL(file, import.meta.url))

function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  const base = { PATH: process.env.PATH ?? '' }
  return spawn(process.execPath, args, {
    env: { ...base, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
}

/** The first line that is JSON with this key. */
async function lineWith(child: ChildProcess, key: string): Promise<Record<string, unknown>> {
  if (!child.stdout) throw new Error('no output to read')
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('{') && key in JSON.parse(line)) {
      child.stdout.resume()
      return JSON.parse(line)
    }
  }
  throw new Error(`the process ended before it said ${key}`)
}

async function stop(child: ChildProcess) {
  child.kill('SIGTERM')
  if (child.exitCode === null) await once(child, 'exit')
}

async function load(plan: LoadPlan): Promise<LoadResult> {
  const client = start([here('load.ts')])
  client.stdin?.end(JSON.stringify(plan))
  return (await lineWith(client, 'answered')) as LoadResult
}

async function startApi(
  bench: Bench,
  only: string[],
): Promise<{ child: ChildProcess; port: number }> {
  const child = start(['--max-semi-space-size=8', here('../../src/main.ts'), 'start', ...only], {
    DATABASE_URL: bench.url,
    SECRET_KEY: Buffer.alloc(32).toString('base64'),
    PORT: '0',
  })
  const { address } = await lineWith(child, 'address')
  return { child, port: Number(new URL(String(address)).port) }
}

/** Resident memory of a process in MB. */
async function memoryOf({ pid }: ChildProcess): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}

const LIST = { emails: 'emails', sms: 'messages' } as const

async function benchAccept(bench: Bench, channel: Channel) {
  const senders = bench.senders[channel]
  const plan = { path: `/v1/${channel}`, senders, connections: 64, seconds: SECONDS }
  const api = await startApi(bench, ['--only', 'api'])
  // First, as the server still writes back what the flood left when that is over.
  const calm = await load({ ...plan, port: api.port, rate: 500 })
  const single = await load({ ...plan, port: api.port })
  const memory = await memoryOf(api.child)
  const inBatches = {
    ...plan,
    path: `/v1/${channel}/batch`,
    senders: senders.slice(0, 20).map(({ key, body }) => ({
      key,
      body: JSON.stringify({
        [LIST[channel]]: Array.from({ length: 1000 }, () => JSON.parse(body)),
      }),
    })),
    port: api.port,
  }
  const batches = await load({ ...inBatches, connections: 2 })
  const batch = await load({ ...inBatches, connections: 1, seconds: Math.ceil(SECONDS / 2) })
  await stop(api.child)
  return { single, calm, batches, batch, memory }
}

/** One transaction per send, each taking its own locks. */
async function benchNaiveAccept(bench: Bench) {
  const api = start([here('naive-api.ts'), bench.url])
  const port = Number((await lineWith(api, 'port')).port)
  const senders = bench.senders.emails
  const answered = await load({
    path: '/v1/emails',
    senders,
    connections: 64,
    seconds: SECONDS,
    port,
  })
  await stop(api)
  return answered
}

/** What api.accept_emails and api.accept_sms take for a message. */
function itemOf(channel: Channel, domain: string) {
  if (channel === 'sms') {
    const { to, body, ...sms } = anSms()
    return { ...sms, sender_id: null, recipient: to, body, segments: 1, scheduled_at: null }
  }
  const email = anEmail(domain)
  return {
    class: 'transactional',
    sender: email.from,
    from_address: `hello@${domain}`,
    from_domain: domain,
    to: [email.to],
    cc: [],
    bcc: [],
    to_addresses: email.to,
    recipients: [email.to],
    subject: email.subject,
    html: email.html,
    text: email.text,
    tags: email.tags,
  }
}

/** Empties the queue and fills it with so many messages, spread over the organisations. */
async function fill(bench: Bench, channel: Channel, count: number) {
  const { sql } = bench
  await sql`truncate app.messages, app.bodies, app.events, app.idempotency_keys, app.sms_parts, graphile_worker._private_jobs`
  await sql`update app.departures d set messages = a.messages_accepted from app.allowances a where a.organisation_id = d.organisation_id`
  const domains = await sql<{ id: string; name: string }[]>`
    select organisation_id as id, name from app.domains limit 100`
  for (let from = 0; from < count; from += 1000) {
    const { id, name } = domains[(from / 1000) % domains.length] as { id: string; name: string }
    const call = { n: 0, organisation_id: id, mode: 'live', fingerprint: '', batch: true }
    const calls = [{ ...call, key: `fill ${from}` }]
    const item = { ...itemOf(channel, name), call: 0 }
    const items = Array.from({ length: 1000 }, (_, index) => ({ ...item, index }))
    await sql.unsafe(`select api.accept_${channel}($1::text::jsonb, $2::text::jsonb, '{}')`, [
      JSON.stringify(calls),
      JSON.stringify(items),
    ])
  }
  await sql`vacuum analyze graphile_worker._private_jobs`
}

async function benchHandOver(
  bench: Bench,
  channel: Channel,
  form: 'naive' | 'coalesced',
  count: number,
) {
  const { sql } = bench
  await fill(bench, channel, count)
  const smsc = channel === 'sms' ? start([here('smsc.ts')]) : null
  const peer = smsc ? [String((await lineWith(smsc, 'port')).port)] : []
  const worker = start([here('worker.ts'), bench.url, form, ...peer])
  for (;;) {
    const [left] = await sql<{ jobs: number }[]>`
      select count(*)::integer as jobs from graphile_worker._private_jobs`
    if (left?.jobs === 0) break
    await new Promise((done) => setTimeout(done, 200))
  }
  await stop(worker)
  if (smsc) await stop(smsc)
  // From the first to the last by the database's own times: starting the process is not counted.
  const [took] = await sql<{ perSecond: number }[]>`
    select (count(*) / extract(epoch from max(sent_at) - min(sent_at)))::float as per_second
    from app.messages where sent_at is not null`
  return took?.perSecond ?? 0
}

/** All roles in one process: idle latency, and all work at once with the sandbox's receipts. */
async function benchWhole(bench: Bench) {
  const { sql } = bench
  await fill(bench, 'emails', 0)
  const whole = await startApi(bench, [])
  const plan = {
    path: '/v1/emails',
    senders: bench.senders.emails,
    port: whole.port,
    connections: 8,
  }
  await load({ ...plan, rate: 20, seconds: SECONDS })
  const [idle] = await sql<{ p50: number; p99: number }[]>`
    select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99
    from (select extract(epoch from sent_at - created_at)::float * 1000 as ms from app.messages
          where sent_at is not null) m`

  await sql`truncate app.messages, app.bodies, app.events, app.idempotency_keys`
  await load({ ...plan, connections: 64, seconds: SECONDS })
  for (;;) {
    const [left] = await sql<{ waiting: number }[]>`
      select count(*)::integer as waiting from app.messages where status <> 'delivered'`
    if (left?.waiting === 0) break
    await new Promise((done) => setTimeout(done, 200))
  }
  const [steady] = await sql<{ perSecond: number }[]>`
    select (count(*) / extract(epoch from max(delivered_at) - min(created_at)))::float as per_second
    from app.messages`
  const memory = await memoryOf(whole.child)
  await stop(whole.child)
  return { idle, steady: steady?.perSecond ?? 0, memory }
}

const bench = await setUp()
try {
  const p = await measureP(bench.pgbenchUrl, SECONDS)
  const naiveAccept = await benchNaiveAccept(bench)
  const accept = await benchAccept(bench, 'emails')
  const naiveHandOver = await benchHandOver(bench, 'emails', 'naive', QUEUED / 4)
  const handOver = await benchHandOver(bench, 'emails', 'coalesced', QUEUED)
  const acceptSms = await benchAccept(bench, 'sms')
  const handOverSms = await benchHandOver(bench, 'sms', 'coalesced', QUEUED)
  const whole = await benchWhole(bench)

  const rows: Row[] = []
  const perSecond = ({ answered, seconds }: LoadResult) => answered / seconds
  const row = (
    work: string,
    value: number,
    unit: string,
    naive: number | null,
    goal: number | null,
  ) =>
    rows.push({
      work,
      measured: `${Math.round(value)} ${unit}`,
      naive: naive === null ? '' : `${Math.round(naive)}`,
      ratio: naive === null ? '' : (value / naive).toFixed(1),
      goal: goal === null ? '' : `${goal} P`,
      reached: goal === null || p === null ? '' : `${(value / p).toFixed(2)} P`,
    })
  const within = (work: string, value: number, unit: string, goal: number) =>
    rows.push({
      work,
      measured: `${value.toFixed(1)} ${unit}`,
      naive: '',
      ratio: '',
      goal: `< ${goal} ${unit}`,
      reached: value < goal ? 'yes' : 'no',
    })

  if (p !== null) row('P: pgbench TPC-B, 16 clients', p, 'tx/s', null, null)
  row('accept, single sends', perSecond(accept.single), '/s', perSecond(naiveAccept), 2)
  within('accept, single sends, p99', accept.single.p99, 'ms', 50)
  within('accept at 500/s, p50', accept.calm.p50, 'ms', 3)
  within('accept at 500/s, p99', accept.calm.p99, 'ms', 15)
  row('accept, batches of 1 000', perSecond(accept.batches) * 1000, '/s', perSecond(naiveAccept), 6)
  within('one batch, p50', accept.batch.p50, 'ms', 150)
  row('hand-over', handOver, '/s', naiveHandOver, 2)
  within('queued to sent when idle, p50', whole.idle?.p50 ?? 0, 'ms', 30)
  within('queued to sent when idle, p99', whole.idle?.p99 ?? 0, 'ms', 200)
  row('accept, single SMS', perSecond(acceptSms.single), '/s', perSecond(naiveAccept), 2)
  within('accept, single SMS, p99', acceptSms.single.p99, 'ms', 50)
  within('accept SMS at 500/s, p50', acceptSms.calm.p50, 'ms', 3)
  within('accept SMS at 500/s, p99', acceptSms.calm.p99, 'ms', 15)
  row(
    'accept, batches of 1 000 SMS',
    perSecond(acceptSms.batches) * 1000,
    '/s',
    perSecond(naiveAccept),
    6,
  )
  within('one batch of SMS, p50', acceptSms.batch.p50, 'ms', 150)
  row('hand-over to a local SMSC', handOverSms, '/s', null, 2)
  row('all roles: accept to delivered', whole.steady, '/s', null, 0.8)
  within('memory, API alone at full load', accept.memory, 'MB', 300)
  within('memory, all roles at full load', whole.memory, 'MB', 300)

  console.log(formatTable(rows, ['work', 'measured', 'naive', 'ratio', 'goal', 'reached']))
  const refused = {
    single: accept.single.refused,
    batches: accept.batches.refused,
    singleSms: acceptSms.single.refused,
    batchesOfSms: acceptSms.batches.refused,
  }
  if (Object.values(refused).some((by) => Object.keys(by).length > 0)) console.log(refused)
  await writeFile(
    'bench.json',
    `${JSON.stringify({ p, naiveAccept, accept, acceptSms, naiveHandOver, handOver, handOverSms, whole }, null, 2)}\n`,
  )
} finally {
  await bench.close()
}
