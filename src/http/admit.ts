import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from 'koa'
import type { Admission } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher.ts'
import type { Call } from '../db/call.ts'
import { Unreachable } from '../db/connection-errors.ts'
import { OutcomeUnknown } from '../db/repeated-call.ts'
import { Refusal } from '../errors.ts'
import { patienceOf } from './patience.ts'

export type Scope = 'emails:send' | 'sms:send' | 'read' | 'domains:write'

export type Admit = {
  /** Who calls, when they may call at all; sets the rate headers. Throws a Refusal otherwise. */
  (ctx: Context, scope: Scope | null): Promise<Admission>
  idle(): Promise<void>
}

const BEARER_KEY = /^Bearer +(sk_(?:live|test)_[A-Za-z0-9]{16,128})$/i

/** How many keys over their limit are remembered; the oldest are forgotten first. */
const MAX_REFUSED = 10_000

/** So many requests over the limit are refused at once; who goes on waits until the second is over. */
const REFUSED_AT_ONCE = 20

/** Those that wait do not go on all at once. */
const SPREAD_MS = 500

/** A key over its limit, until a time of performance.now(). */
type OverLimit = { admission: Admission; until: number; requests: number }

/**
 * Admits requests. Nothing that admits a key is kept here: a key that was revoked or an organisation that was
 * suspended is refused at its next request. That a key is over its limit is kept until the second is over,
 * so that whoever goes on sending costs the database nothing, and others little.
 */
export function admission(call: Call, wait: (ms: number) => Promise<unknown> = pause): Admit {
  const overLimit = new Map<string, OverLimit>()
  const admitInBatches = createBatcher<string, Admission | undefined>(
    async (keys) => {
      const askedAt = performance.now()
      const admissions: (Admission | undefined)[] = keys.map(() => undefined)
      for (const row of await call('admit', { keys })) {
        admissions[row.n - 1] = row
        if (row.refusedForMs !== null) {
          remember(keys[row.n - 1] as string, row, askedAt + row.refusedForMs)
        }
      }
      return admissions
    },
    {
      maxWeight: 1000,
      // A key's requests wait for each other, not for those of other keys. Those that are admitted together
      // go on together, so that more of them would hold up the event loop.
      fairness: { ownerOf: (key) => key, share: 50, maxSharedWeight: 64 },
    },
  )

  function remember(key: string, admission: Admission, until: number) {
    if (isStillOver(overLimit.get(key))) return
    // The latest comes last.
    overLimit.delete(key)
    overLimit.set(key, { admission, until, requests: 0 })
    const [oldest] = overLimit.keys()
    if (overLimit.size > MAX_REFUSED && oldest !== undefined) overLimit.delete(oldest)
  }

  async function admit(key: string, signal: AbortSignal): Promise<Admission | undefined> {
    const known = overLimit.get(key)
    if (!isStillOver(known)) return admitInBatches(key, signal)
    known.requests += 1
    if (known.requests > REFUSED_AT_ONCE) {
      await wait(known.until - performance.now() + SPREAD_MS * Math.random())
    }
    return known.admission
  }

  const admitRequest = async (ctx: Context, scope: Scope | null) => {
    const [, key] = BEARER_KEY.exec(ctx.get('Authorization')) ?? []
    // Hashed here, so that no key is ever in a statement that the database may log.
    const ask = (signal: AbortSignal) => admit(hash('sha256', key ?? '', 'hex'), signal)
    const admission = key && (await patienceOf(ctx).wait(ask).catch(asUnreachable))
    if (!admission) throw new Refusal('unauthorized')

    ctx.state.organisationId = admission.organisationId
    ctx.set('x-ratelimit-limit', String(admission.limit))
    ctx.set('x-ratelimit-remaining', String(admission.remaining))
    // First, so that a suspended organisation costs no more than others.
    if (admission.retryAfter !== null) {
      throw new Refusal('rate_limited', null, { retryAfter: admission.retryAfter })
    }
    if (admission.state === 'suspended') throw new Refusal('org_suspended')
    if (scope && !admission.scopes.includes(scope)) {
      throw new Refusal('insufficient_scope', null, {
        words: `The API key lacks the scope ${scope}, which this endpoint needs.`,
      })
    }
    return admission
  }
  return Object.assign(admitRequest, { idle: admitInBatches.idle })
}

function isStillOver(known: OverLimit | undefined): known is OverLimit {
  return known !== undefined && performance.now() < known.until
}

/** Admission sends nothing, whatever became of it. */
function asUnreachable(error: unknown): never {
  throw error instanceof OutcomeUnknown ? new Unreachable(error.message, error) : error
}
