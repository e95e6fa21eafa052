// "npm run bench" measures the speed goals (ARCHITECTURE.md#speed-goals). It compares each figure with a
// naive implementation in the same run, and queries over many messages with the same over few. It
// prints a table and writes bench.json. Only the ratios of one run can be compared. README.md lists the flags.
import { writeFile } from 'node:fs/promises'
import { formatTable } from '../../src/cli/table.ts'
import { benchAccept, benchNaiveAccept } from './accept.ts'
import { ACCOUNTS, printAccount } from './account.ts'
import { benchAttempts } from './attempts.ts'
import { printCells } from './cells.ts'
import { printCores } from './cores.ts'
import { printGrowth } from './filled.ts'
import { benchGrowth } from './growth.ts'
import type { LoadResult } from './load.ts'
import { startApi, stop } from './processes.ts'
import { type Bench, measureP, setUp } from './setup.ts'
import { printHour } from './steady.ts'
import { benchDeliveries, benchEvents } from './webhooks.ts'
import { benchWhole } from './whole.ts'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 10)
const QUEUED = 40_000

/** Behind what is measured last; none by default, as ten million take some minutes and gigabytes. */
const MESSAGES = Number(process.env.BENCH_MESSAGES ?? 0)

type Row = {
  work: string
  measured: string
  naive: string
  ratio: string
  goal: string
  reached: string
}

const has = (flag: string) => process.argv.includes(flag)
const isAccount = has('--account')

const NAMES = isAccount
  ? Object.keys(ACCOUNTS)
  : ['accept', 'attempts', 'accept-sms', 'attempts-sms', 'deliveries', 'events', 'whole']

/** Which of these to measure, such as `whole,deliveries`; all by default, and then their naive forms. */
const wanted = process.env.BENCH_ROWS?.split(',')
const unknown = wanted?.find((name) => !NAMES.includes(name))
if (unknown !== undefined) throw new Error(`BENCH_ROWS: ${unknown} is none of ${NAMES}`)

if (has('--cells')) await printCells(SECONDS)
else await measureOne()

/** Measures one database and its processes. */
async function measureOne() {
  const bench = await setUp()
  try {
    // Endpoints need what a service leaves behind.
    await stop((await startApi(bench, ['--only', 'api'])).child)
    if (isAccount) await printAccount(bench, SECONDS, wanted)
    else if (has('--cores')) await printCores(bench, SECONDS)
    else if (has('--growth')) await printGrowth(bench, SECONDS)
    else if (has('--hour')) await printHour(bench, SECONDS)
    else await measureAll(bench)
  } finally {
    await bench.close()
  }
}

/** Measures what is wanted, prints the table and writes bench.json. */
async function measureAll(bench: Bench) {
  const only = async <Result>(
    name: string | null,
    work: () => Promise<Result>,
  ): Promise<Result | null> => (!wanted || (name !== null && wanted.includes(name)) ? work() : null)
  const p = await measureP(bench.pgbenchUrl, SECONDS)
  const naiveAccept = await only(null, () => benchNaiveAccept(bench, SECONDS))
  const accept = await only('accept', () => benchAccept(bench, 'emails', SECONDS))
  const naiveAttempts = await only(null, () => benchAttempts(bench, 'emails', 'naive', QUEUED / 4))
  const attemptSend = await only('attempts', () =>
    benchAttempts(bench, 'emails', 'coalesced', QUEUED),
  )
  const acceptSms = await only('accept-sms', () => benchAccept(bench, 'sms', SECONDS))
  const attemptSms = await only('attempts-sms', () =>
    benchAttempts(bench, 'sms', 'coalesced', QUEUED),
  )
  const deliveries = await only('deliveries', () => benchDeliveries(bench, QUEUED))
  const events = await only('events', () => benchEvents(bench))
  const whole = await only('whole', () => benchWhole(bench, SECONDS))
  const growth = MESSAGES > 0 ? await benchGrowth(bench, MESSAGES) : null

  const rows: Row[] = []
  type Value = number | null | undefined
  const perSecond = (load: LoadResult | null | undefined) => load && load.answered / load.seconds
  const inBatches = (load: LoadResult | undefined) => load && (load.answered / load.seconds) * 1000
  // What was not measured has no row.
  const row = (work: string, value: Value, unit: string, naive: Value, goal: number | null) => {
    if (value == null) return
    rows.push({
      work,
      measured: `${Math.round(value)} ${unit}`,
      naive: naive == null ? '' : `${Math.round(naive)}`,
      ratio: naive == null ? '' : (value / naive).toFixed(1),
      goal: goal === null ? '' : `${goal} P`,
      reached: goal === null || p === null ? '' : `${(value / p).toFixed(2)} P`,
    })
  }
  const within = (work: string, value: Value, unit: string, goal: number, few?: number) => {
    if (value == null) return
    rows.push({
      work,
      measured: `${value.toFixed(1)} ${unit}`,
      naive: few === undefined ? '' : few.toFixed(1),
      ratio: few === undefined ? '' : (value / few).toFixed(1),
      goal: `< ${goal} ${unit}`,
      reached: value < goal ? 'yes' : 'no',
    })
  }
  const naive = perSecond(naiveAccept)
  const acceptRows = (of: string, measured: Awaited<ReturnType<typeof benchAccept>> | null) => {
    row(`single accepts of ${of}`, perSecond(measured?.single), '/s', naive, 1.5)
    within(`single accepts of ${of}, p99`, measured?.single.p99, 'ms', 50)
    within(`accepts of ${of} at 500/s, p50`, measured?.calm.p50, 'ms', 3)
    within(`accepts of ${of} at 500/s, p99`, measured?.calm.p99, 'ms', 15)
    row(`accepts in batches of 1 000 ${of}`, inBatches(measured?.batches), '/s', naive, 5)
    within(`one batch of ${of}, p50`, measured?.batch.p50, 'ms', 100)
  }

  row('P: pgbench TPC-B, 16 clients', p, 'tx/s', null, null)
  acceptRows('emails', accept)
  row('attempts', attemptSend, '/s', naiveAttempts, 2)
  within('queued to sent when idle, p50', whole?.idle?.p50, 'ms', 10)
  within('queued to sent when idle, p99', whole?.idle?.p99, 'ms', 50)
  acceptRows('SMS', acceptSms)
  row('attempts of SMS at a local SMSC', attemptSms, '/s', null, 1.5)
  row('webhook deliveries to a local receiver', deliveries, '/s', null, 2)
  within('events without an endpoint, of attempt and receipt', events?.unwanted, '%', 5)
  row('events with an endpoint, of the same', events?.wanted, '%', null, null)
  row('all roles: accept to delivered, and both events', whole?.steady, '/s', null, 0.4)
  within('memory, API alone at full load', accept?.memory, 'MB', 300)
  within('memory, all roles at full load', whole?.memory, 'MB', 300)

  if (growth) {
    const { messages, slowest, retrieval, retrievalOfFew: few, slowestSend, dropped } = growth
    const among = `with ${messages / 1e6} million messages`
    for (const [view, ms] of slowest) within(`ops.${view} ${among}`, ms, 'ms', 200)
    within(`GET /v1/emails/{id} ${among}, p50`, retrieval.p50, 'ms', 3, few.p50)
    within(`GET /v1/emails/{id} ${among}, p99`, retrieval.p99, 'ms', 3, few.p99)
    within(`slowest of 200 sends/s while ${dropped} partitions go`, slowestSend, 'ms', 250)
  }

  console.log(formatTable(rows, ['work', 'measured', 'naive', 'ratio', 'goal', 'reached']))
  const refused = {
    single: accept?.single.refused,
    batches: accept?.batches.refused,
    singleSms: acceptSms?.single.refused,
    batchesOfSms: acceptSms?.batches.refused,
  }
  if (Object.values(refused).some((by) => Object.keys(by ?? {}).length > 0)) console.log(refused)
  await writeFile(
    'bench.json',
    `${JSON.stringify({ p, naiveAccept, accept, acceptSms, naiveAttempts, attemptSend, attemptSms, deliveries, events, whole, growth }, null, 2)}\n`,
  )
}
