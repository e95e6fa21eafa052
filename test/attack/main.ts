// `npm run attack`: runs every attack of test/attack/attacks against a service while a victim, another
// organisation, sends one email every 100 ms. Prints the victim's times with and without the attack. Exits 1 if
// any time is outside its goal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg, networkInterfaces } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { formatTable } from '../../src/cli/table.ts'
import type { Attack, Attacker } from './attack.ts'
import { attacks } from './attacks/index.ts'
import {
  type Environment,
  givenEnvironment,
  type Mode,
  NotApplicable,
  ownEnvironment,
  type Target,
} from './target.ts'
import { measureVictim, type VictimFigures } from './victim.ts'

const USAGE = `usage: npm run attack [-- options]
  --only NAME,…       the attacks to run; default all
  --keys 1,10         number of attacking keys, each of another organisation
  --modes live,test   the mode of their keys
  --seconds 12        duration of each attack
  --list              print the attacks
To attack a running service instead of starting one for each attack:
  --base URL          its URL; another machine needs --elsewhere
  --victim KEY:DOMAIN        a live key and a verified domain of its organisation
  --attackers KEY:DOMAIN,…   keys and domains of other organisations
  --pid PID           its process ID, to measure memory`

/** The limits during every attack: milliseconds of the victim's requests, and MB of the process. */
const GOAL = { p50: 50, p99: 500, health: 500, rss: 600 }

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    keys: { type: 'string', default: '1,10' },
    modes: { type: 'string', default: 'live,test' },
    seconds: { type: 'string', default: '12' },
    list: { type: 'boolean' },
    help: { type: 'boolean' },
    base: { type: 'string' },
    victim: { type: 'string' },
    attackers: { type: 'string', default: '' },
    pid: { type: 'string' },
    elsewhere: { type: 'boolean' },
  },
})

type Row = Record<string, string | number>

const COLUMNS = [
  ...['attack', 'keys', 'p50', 'p99', 'max', 'healthz p99', 'RSS MB', 'log KB/s', 'restarts'],
  ...['victim errors', 'responses', 'notes', 'within goal'],
]

function stopWith(message: string): never {
  console.error(message)
  process.exit(2)
}

function wantedAttacks(): Attack[] {
  const names = options.only?.split(',') ?? attacks.map(({ name }) => name)
  return names.map(
    (name) =>
      attacks.find((one) => one.name === name) ?? stopWith(`no attack "${name}"; see --list`),
  )
}

function attackerOf(text: string): Attacker {
  const [key = '', domain = ''] = text.split(':')
  if (!key || !domain) stopWith(`"${text}" must be KEY:DOMAIN`)
  return { key, domain, ids: [] }
}

async function openEnvironment(): Promise<Environment> {
  if (!options.base) return ownEnvironment()
  const { hostname } = new URL(options.base)
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
  const isHere =
    hostname === 'localhost' ||
    own.some(({ address }) => address === hostname.replaceAll(/[[\]]/g, ''))
  if (!isHere && !options.elsewhere) {
    stopWith(`${hostname} is not this machine; add --elsewhere to attack it`)
  }
  if (!options.victim) stopWith('--base needs --victim KEY:DOMAIN')
  return givenEnvironment({
    base: options.base.replace(/\/$/, ''),
    victim: attackerOf(options.victim),
    attackers: options.attackers.split(',').filter(Boolean).map(attackerOf),
    pid: options.pid ? Number(options.pid) : null,
  })
}

/** Measures the victim during an attack, or alone if `attack` is null. */
async function measure(environment: Environment, attack: Attack | null, mode: Mode, keys: number) {
  const target = await environment.open(attack, mode, keys)
  try {
    const attacker = attack && (await startAttacker(attack, target))
    const { base, victim } = target
    await measureVictim({ base, ...victim, seconds: 1 })
    await target.begin()
    const attacking = attacker?.attack() ?? Promise.resolve({})
    const figures = await measureVictim({ base, ...victim, seconds })
    const [effects, responses] = [await target.effects(), await attacking]
    return rowOf(attack, keys > 0 ? `${keys} ${mode}` : '', figures, effects, responses)
  } finally {
    await target.close()
  }
}

async function startAttacker(attack: Attack, { base, attackers }: Target) {
  const file = new URL('attacker.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const order = { name: attack.name, base, attackers, seconds }
  child.stdin.write(`${JSON.stringify(order)}\n`)
  await lines.next()
  return {
    async attack(): Promise<Record<string, number>> {
      child.stdin.write('\n')
      const { value } = await lines.next()
      await exit
      return value ? JSON.parse(value).responses : {}
    },
  }
}

function rowOf(
  attack: Attack | null,
  keys: string,
  { sends, health, errors }: VictimFigures,
  { rss, isDead, logBytes, notes }: Awaited<ReturnType<Target['effects']>>,
  responses: Record<string, number>,
): Row {
  const isWithin =
    sends.p50 < GOAL.p50 &&
    sends.p99 < GOAL.p99 &&
    health.p99 < GOAL.health &&
    (rss ?? 0) < GOAL.rss &&
    !isDead &&
    Object.keys(errors).length === 0
  return {
    attack: attack?.name ?? 'undisturbed',
    keys,
    p50: Math.round(sends.p50),
    p99: Math.round(sends.p99),
    max: Math.round(sends.max),
    'healthz p99': Math.round(health.p99),
    'RSS MB': rss ?? '',
    'log KB/s': logBytes === null ? '' : (logBytes / seconds / 1000).toFixed(1),
    restarts: isDead ? 1 : 0,
    'victim errors': counts(errors),
    responses: counts(responses),
    notes: notes.join('; '),
    'within goal': isWithin ? 'yes' : 'NO',
  }
}

function counts(of: Record<string, number>): string {
  return Object.entries(of)
    .map(([what, count]) => `${what}: ${count}`)
    .join(', ')
}

if (options.help) {
  console.log(USAGE)
  process.exit()
}
if (options.list) {
  console.log(
    formatTable(
      attacks.map(({ name, title }) => ({ name, title })),
      ['name', 'title'],
    ),
  )
  process.exit()
}

const seconds = Number(options.seconds)
const wanted = wantedAttacks()
const environment = await openEnvironment()
const rows: Row[] = []
let isInterrupted = false
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    isInterrupted = true
  })
}
const add = async (attack: Attack | null, mode: Mode, keys: number) => {
  if (isInterrupted) return
  try {
    const row = await measure(environment, attack, mode, keys)
    rows.push(row)
    console.error(COLUMNS.map((column) => `${column} ${row[column]}`).join(' | '))
  } catch (error) {
    const { message } = error as Error
    console.error(`${attack?.name}, ${keys} ${mode}: ${message}`)
    if (error instanceof NotApplicable) return
    const row = Object.fromEntries(COLUMNS.map((column) => [column, '']))
    rows.push({
      ...row,
      ...{ attack: attack?.name ?? 'undisturbed', keys: `${keys} ${mode}` },
      ...{ notes: message, 'within goal': 'NO' },
    })
  }
}
try {
  await add(null, 'live', 0)
  for (const attack of wanted) {
    for (const keys of attack.isKeyless ? [1] : options.keys.split(',').map(Number)) {
      for (const mode of attack.isKeyless ? ['live'] : options.modes.split(',')) {
        await add(attack, mode as Mode, keys)
      }
    }
  }
  await add(null, 'live', 0)
} finally {
  await environment.close()
}
console.log(formatTable(rows, COLUMNS))
const load = loadavg()[1]?.toFixed(1)
console.log(
  `Times in ms. Goal: p50 < ${GOAL.p50}, p99 < ${GOAL.p99}, /healthz p99 < ${GOAL.health},`,
)
console.log(`memory < ${GOAL.rss} MB, no restart, no error of the victim.`)
console.log(`Load of this machine: ${load} on ${availableParallelism()} processors.`)
if (rows.some((row) => row['within goal'] === 'NO')) process.exitCode = 1
