import { hash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from 'koa'
import type { Admission, enums } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher/index.ts'
import type { Call } from '../db/call.ts'
import { Unreachable } from '../db/connection-errors.ts'
import { OutcomeUnknown } from '../db/repeated-call.ts'
import { Refusal } from '../errors.ts'
import { type KnownKey, UNKNOWN_OWNER } from './fair-start.ts'
import { setLatest } from './set-latest.ts'
import { timeLimitOf } from './time-limit.ts'

export type Scope = (typeof enums.scope)[number]

export type Admit = ReturnType<typeof admission>

/**
 * The admission of a known key together with other work, once it was asked for at `askedAt`. `admission` is absent if
 * the database does not know the key. After the connection was lost, it is unknown whether the key was admitted and
 * the work done.
 */
export type Question = {
  asked?: { isLost: false; askedAt: number; admission: Admission | undefined } | { isLost: true }
}

const BEARER_KEY = /^Bearer +(sk_(?:live|test)_(?:[a-z]_)?[A-Za-z0-9]{16,128})$/i

/** The number of keys over their limit that are remembered; the oldest are forgotten first. */
const MAX_REMEMBERED = 10_000

/** 20 requests over the limit get 429 at once, further ones when the second has ended, plus up to 500 ms. */
const REFUSED_AT_ONCE = 20
const SPREAD_MS = 500

/** If more requests than this wait for their 429, a further one is refused at once and its connection closes. */
const MAX_WAITING_OF_KEY = 100
const MAX_WAITING = 1000

/** The hash of a request's key, and the owner by which the batcher takes candidates round-robin. */
type Candidate = { key: string; owner: string }

/** A key over its limit until `endsAt`, in ms of performance.now(). */
type OverLimit = { admission: Admission; endsAt: number; requests: number; waiting: number }

/**
 * Admits requests by their API key. An admission is never cached: after a key is revoked or an organisation
 * suspended, the next request is refused. A key over its rate limit is remembered until the second ends, so
 * that its further requests cost the database nothing.
 */
export function admission(call: Call, wait: (ms: number) => Promise<unknown> = pause) {
  const overLimit = new Map<string, OverLimit>()
  /** Requests over a limit that wait for their 429. */
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
      // Requests that are admitted together continue together; more of them would block the event loop.
      fairness: { ownerOf: ({ owner }) => owner, share: 50, maxSharedWeight: 64 },
    },
  )

  function remember(key: string, admission: Admission, endsAt: number) {
    if (isStillOver(overLimit.get(key))) return
    setLatest(overLimit, key, { admission, endsAt, requests: 0, waiting: 0 }, MAX_REMEMBERED)
  }

  async function admit(ctx: Context, key: string, signal: AbortSignal) {
    const known = overLimit.get(key)
    if (!isStillOver(known)) {
      return admitInBatches({ key, owner: ctx.state.owner ?? UNKNOWN_OWNER }, signal)
    }
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

  /** Returns the caller's admission and sets the rate headers; throws a Refusal if the caller is not admitted. */
  const admitRequest = async (ctx: Context, scope: Scope | null): Promise<Admission> => {
    const [, key] = BEARER_KEY.exec(ctx.get('Authorization')) ?? []
    if (!key) throw new Refusal('unauthorized')
    // Hashed here, so that no statement that the database may log contains a key.
    const sha256 = hash('sha256', key, 'hex')
    const ask = (signal: AbortSignal) => admit(ctx, sha256, signal)
    const admission = await timeLimitOf(ctx).wait(ask).catch(asUnreachable)
    return judge(ctx, scope, sha256, admission)
  }

  return Object.assign(admitRequest, {
    /**
     * Returns the key of a request if the request may be admitted together with its work: the key was admitted
     * lately and is not over its limit now.
     */
    knownKeyOf({ state }: Context): KnownKey | undefined {
      const known: KnownKey | undefined = state.known
      return known && !isStillOver(overLimit.get(known.key)) ? known : undefined
    },
    /** Does the same for a known key once it was asked for; returns null if its admission was lost. */
    admitKnown(
      ctx: Context,
      scope: Scope,
      { key }: KnownKey,
      { asked }: Question,
    ): Admission | null {
      if (!asked || asked.isLost) return null
      const { admission, askedAt } = asked
      if (admission && admission.refusedForMs !== null) {
        remember(key, admission, askedAt + admission.refusedForMs)
      }
      return judge(ctx, scope, key, admission)
    },
    idle: admitInBatches.idle,
  })
}

/** Sets the rate headers of an admission; throws a Refusal if it does not admit the request. */
function judge(
  ctx: Context,
  scope: Scope | null,
  key: string,
  admission: Admission | undefined,
): Admission {
  if (!admission) {
    ctx.state.admitted = null
    throw new Refusal('unauthorized')
  }
  const { organisationId, mode } = admission
  ctx.state.organisationId = organisationId
  ctx.state.admitted = { key, organisationId, mode } satisfies KnownKey
  ctx.set('x-ratelimit-limit', String(admission.limit))
  ctx.set('x-ratelimit-remaining', String(admission.remaining))
  // Before the other checks, so that a suspended organisation is rate limited like any other.
  if (admission.retryAfter !== null) {
    throw new Refusal('rate_limited', null, { retryAfter: admission.retryAfter })
  }
  if (admission.state === 'suspended') throw new Refusal('org_suspended')
  if (scope && !admission.scopes.includes(scope)) {
    throw new Refusal('insufficient_scope', null, {
      message: `The API key lacks the scope ${scope}, which this endpoint needs.`,
    })
  }
  return admission
}

function isStillOver(known: OverLimit | undefined): known is OverLimit {
  return known !== undefined && performance.now() < known.endsAt
}

/** Admission has no effect that a caller must know of, so an unknown outcome becomes Unreachable. */
function asUnreachable(error: unknown): never {
  throw error instanceof OutcomeUnknown ? new Unreachable(error.message, error) : error
}
