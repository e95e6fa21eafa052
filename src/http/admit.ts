import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from 'koa'
import type { Admission } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { Unreachable } from '../db/connection-errors.ts'
import { OutcomeUnknown } from '../db/repeated-call.ts'
import { Refusal } from '../errors.ts'
import { OTHERS } from './fair-start.ts'
import { timeLimitOf } from './time-limit.ts'

export type Scope = 'emails:send' | 'sms:send' | 'read' | 'domains:write'

export type Admit = {
  /** Who calls, when they may call at all; sets the rate headers. Throws a Refusal otherwise. */
  (ctx: Context, scope: Scope | null): Promise<Admission>
  idle(): Promise<void>
}

const BEARER_KEY = /^Bearer +(sk_(?:live|test)_[A-Za-z0-9]{16,128})$/i

/** How many keys over their limit are remembered; the oldest are forgotten first. */
const MAX_REFUSED = 10_000

/** The first 20 requests over the limit get 429 at once, later ones after the second ends, plus up to 500 ms. */
const REFUSED_AT_ONCE = 20
const SPREAD_MS = 500

/** Beyond these numbers a request does not wait: it is refused at once, and its connection closes. */
const MAX_WAITING_OF_KEY = 100
const MAX_WAITING = 1000

/** The hash of a request's key, and the party by which it takes turns. */
type Candidate = { key: string; party: string }

/** A key over its limit until `endsAt`, in ms of performance.now(). */
type OverLimit = { admission: Admission; endsAt: number; requests: number; waiting: number }

/**
 * Admits requests. Nothing that admits a key is kept here: a key that was revoked or an organisation that was
 * suspended is refused at its next request. That a key is over its limit is kept until the second is over,
 * so that whoever goes on sending costs the database nothing, and others little.
 */
export function admission(call: Call, wait: (ms: number) => Promise<unknown> = pause): Admit {
  const overLimit = new Map<string, OverLimit>()
  /** Requests over a limit that wait for their refusal. */
  let waiting = 0
  const admitInBatches = createBatcher<Candidate, Admission | undefined>(
    async (candidates) => {
      const askedAt = performance.now()
      const keys = candidates.map(({ key }) => key)
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
      // Requests wait for others of their party, not for those of other parties. Those that are admitted
      // together go on together, so that more of them would hold up the event loop.
      fairness: { ownerOf: ({ party }) => party, share: 50, maxSharedWeight: 64 },
    },
  )

  function remember(key: string, admission: Admission, endsAt: number) {
    if (isStillOver(overLimit.get(key))) return
    // The latest comes last.
    overLimit.delete(key)
    overLimit.set(key, { admission, endsAt, requests: 0, waiting: 0 })
    const [oldest] = overLimit.keys()
    if (overLimit.size > MAX_REFUSED && oldest !== undefined) overLimit.delete(oldest)
  }

  async function admit(
    ctx: Context,
    key: string,
    signal: AbortSignal,
  ): Promise<Admission | undefined> {
    const known = overLimit.get(key)
    if (!isStillOver(known))
      return admitInBatches({ key, party: ctx.state.party ?? OTHERS }, signal)
    known.requests += 1
    if (known.requests <= REFUSED_AT_ONCE) return known.admission
    if (known.waiting >= MAX_WAITING_OF_KEY || waiting >= MAX_WAITING) {
      ctx.set('Connection', 'close')
      return known.admission
    }
    known.waiting += 1
    waiting += 1
    await wait(known.endsAt - performance.now() + SPREAD_MS * Math.random())
    known.waiting -= 1
    waiting -= 1
    return known.admission
  }

  const admitRequest = async (ctx: Context, scope: Scope | null) => {
    const [, key] = BEARER_KEY.exec(ctx.get('Authorization')) ?? []
    // Hashed here, so that no key is ever in a statement that the database may log.
    const ask = (signal: AbortSignal) => admit(ctx, hash('sha256', key ?? '', 'hex'), signal)
    const admission = key && (await timeLimitOf(ctx).wait(ask).catch(asUnreachable))
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
  return known !== undefined && performance.now() < known.endsAt
}

/** Admission accepts no message, so an unknown outcome is reported as unreachable. */
function asUnreachable(error: unknown): never {
  throw error instanceof OutcomeUnknown ? new Unreachable(error.message, error) : error
}
