import { hash } from 'node:crypto'
import type { Context } from 'koa'
import type { Admission } from '../db/api.gen.ts'
import { createBatcher } from '../db/batcher.ts'
import type { Call } from '../db/call.ts'
import { Refusal } from '../errors.ts'

export type Scope = 'emails:send' | 'sms:send' | 'read' | 'domains:write'

export type Admit = {
  /** Who calls, when they may call at all; sets the rate headers. Throws a Refusal otherwise. */
  (ctx: Context, scope: Scope | null): Promise<Admission>
  idle(): Promise<void>
}

const BEARER_KEY = /^Bearer +(sk_(?:live|test)_[A-Za-z0-9]{16,128})$/i

/**
 * Admission of requests (interface 5 and 8). Nothing about a key is kept here: a key that was revoked
 * or an organisation that was suspended is refused at its next request.
 */
export function admission(call: Call): Admit {
  const admit = createBatcher<string, Admission | undefined>(
    async (keys) => {
      const admissions: (Admission | undefined)[] = keys.map(() => undefined)
      for (const row of await call('admit', { keys })) admissions[row.n - 1] = row
      return admissions
    },
    {
      maxWeight: 1000,
      // A key's requests wait for each other, not for those of other keys.
      fairness: { ownerOf: (key) => key, share: 100, maxSharedWeight: 1000 },
    },
  )

  const admitRequest = async (ctx: Context, scope: Scope | null) => {
    const [, key] = BEARER_KEY.exec(ctx.get('Authorization')) ?? []
    // Hashed here, so that no key is ever in a statement that the database may log.
    const admission = key && (await admit(hash('sha256', key, 'hex')))
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
  return Object.assign(admitRequest, { idle: admit.idle })
}
