import t from 'tap'
import type { Call } from '../../src/db/call.ts'
import { ConnectionLost, Unreachable } from '../../src/db/connection-errors.ts'
import { OutcomeUnknown, repeatedCall, TimedOut } from '../../src/db/repeated-call.ts'
import { Refusal } from '../../src/errors.ts'

const lost = new ConnectionLost({ code: 'ECONNRESET' })
const unreachable = new Unreachable('refused')
const cancelled = Object.assign(new Error('canceling statement'), { code: '57014' })

/** A repeated call whose calls end like this, one after the other, and a count of the calls. */
function repeated(
  outcomes: unknown[],
  options = { beginsWithinMs: 60_000, respondsWithinMs: 60_000 },
) {
  let attempts = 0
  const attempt = (async () => {
    const outcome = outcomes[attempts]
    attempts += 1
    if (outcome instanceof Error) throw outcome
    return outcome
  }) as Call
  const call = repeatedCall(attempt, new Set(['admit']), options)
  return {
    admit: () => call('admit', { keys: [] }) as Promise<unknown>,
    deregister: () => call('deregister', { pool_id: '' }) as Promise<unknown>,
    attempts: () => attempts,
  }
}

t.test(
  'repeatedCall: a call whose connection was lost is repeated until it gets a response',
  async (t) => {
    const { admit, attempts } = repeated([lost, lost, unreachable, 'answer'])
    t.equal(await admit(), 'answer')
    t.equal(attempts(), 4)
  },
)

t.test('repeatedCall: a refusal of a repeated call is the outcome', async (t) => {
  const refusal = new Refusal('org_suspended')
  await t.rejects(repeated([lost, refusal]).admit(), refusal)
})

t.test('repeatedCall: an error before anything was sent is thrown unchanged', async (t) => {
  await t.rejects(repeated([unreachable]).admit(), { name: 'Unreachable' })
})

t.test('repeatedCall: a statement that the server cancelled is not repeated', async (t) => {
  const { admit, attempts } = repeated([cancelled])
  const error = await admit().catch((error) => error)
  t.type(error, TimedOut)
  t.equal(attempts(), 1)
})

t.test('repeatedCall: after a lost connection only a response settles the outcome', async (t) => {
  const limits = { beginsWithinMs: 0, respondsWithinMs: 60_000 }
  for (const outcomes of [[lost], [lost, unreachable], [lost, cancelled]]) {
    const error = await repeated(outcomes, limits)
      .admit()
      .catch((error) => error)
    t.type(error, OutcomeUnknown)
  }
})

t.test('repeatedCall: a call that does not end throws OutcomeUnknown', async (t) => {
  const never = new Promise(() => undefined)
  const limits = { beginsWithinMs: 0, respondsWithinMs: 1 }
  const error = await repeated([never], limits)
    .admit()
    .catch((error) => error)
  t.type(error, OutcomeUnknown)
})

t.test('repeatedCall: a function that is not named is called once', async (t) => {
  const { deregister, attempts } = repeated([lost, 'answer'])
  await t.rejects(deregister(), { name: 'ConnectionLost' })
  t.equal(attempts(), 1)
})
