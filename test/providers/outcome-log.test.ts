import { pino } from 'pino'
import t from 'tap'
import { createOutcomeLog } from '../../src/providers/outcome-log.ts'

const ID = '01999999-0000-7000-8000-0000000000c3'

/** An outcome log with what it has written and counted. */
function logged() {
  const lines: Record<string, unknown>[] = []
  const counted: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line)) })
  const metrics = { attemptSend: (...labels: string[]) => counted.push(labels.join(' ')) }
  return { lines, counted, outcomes: createOutcomeLog({ log, metrics }) }
}

t.test('createOutcomeLog(): a provider that is down logs one warning a minute', async (t) => {
  const { lines, counted, outcomes } = logged()
  const refused = { provider: 'smtp', outcome: 'deferred', about: 'connection' } as const
  for (const code of ['ECONNREFUSED', 'ECONNREFUSED', 'ENOTFOUND']) {
    outcomes.noteEmail(ID, { ...refused, code, text: 'quotes ann@there.example' })
  }
  const first = { level: 40, provider: 'smtp', msg: 'provider cannot be reached' }
  t.match(lines, [{ ...first, code: 'ECONNREFUSED', messages: 1 }])
  t.equal(lines.length, 1)
  outcomes.flush()
  t.match(lines.slice(1), [{ ...first, code: 'ENOTFOUND', messages: 2 }])
  t.notMatch(JSON.stringify(lines), /ann@/)
  outcomes.noteSms(ID, { provider: 'smpp', outcome: 'deferred', about: 'provider', code: 'X' })
  t.match(lines[2], { provider: 'smpp', messages: 1, msg: 'provider refuses messages' })
  t.strictSame(counted, [...Array(3).fill('email smtp deferred'), 'sms smpp deferred'])
})

t.test('createOutcomeLog(): unconfirmed messages are logged apart from refused ones', async (t) => {
  const { lines, outcomes } = logged()
  const provider = 'mailgun'
  const refused = { provider, outcome: 'deferred', about: 'provider', code: '429' } as const
  const unconfirmed = { provider, outcome: 'ambiguous', about: 'provider', code: '503' } as const
  for (const result of [refused, unconfirmed, unconfirmed, refused, unconfirmed]) {
    outcomes.noteEmail(ID, result)
  }
  outcomes.flush()
  const warnings = lines.filter(({ level }) => level === 40)
  t.same(
    warnings.map(({ msg, code, messages }) => [msg, code, messages]),
    [
      ['provider refuses messages', '429', 1],
      ['provider does not confirm messages', '503', 1],
      ['provider refuses messages', '429', 1],
      ['provider does not confirm messages', '503', 2],
    ],
  )
})

t.test('createOutcomeLog(): a refusal of one message or the sandbox is no warning', async (t) => {
  const { lines, outcomes } = logged()
  const deferred = { outcome: 'deferred', code: '451' } as const
  outcomes.noteEmail(ID, { ...deferred, provider: 'smtp', about: 'message' })
  outcomes.noteEmail(ID, { ...deferred, provider: 'smtp' })
  outcomes.noteEmail(ID, { ...deferred, provider: 'sandbox', about: 'provider' })
  outcomes.noteSms(ID, { ...deferred, provider: 'smpp', about: 'connection' })
  t.strictSame(lines, [])
  outcomes.noteEmail(ID, { provider: 'smtp', outcome: 'failed', about: 'message' })
  t.match(lines, [{ level: 30, message: /^em_/, outcome: 'failed', msg: 'message attempted' }])
})
