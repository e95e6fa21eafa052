import { setTimeout as pause } from 'node:timers/promises'
import type { DomainWork, Reply } from '../db/api.gen.ts'
import { ConnectionLost, Unreachable } from '../db/connection-errors.ts'
import { CLIENT_TIME_LIMIT } from '../db/repeated-call.ts'
import { Refusal } from '../errors.ts'
import { DomainRefused, ProviderUnavailable } from '../providers/email.ts'

const POLL_MS = 100

/** Longer than the provider's slowest response, so that any other change of the domain has ended. */
const MAX_WAIT_MS = 60_000

export type Change = {
  /** Reserves the domain, or returns the response of an earlier call. `again` is `since` of the call before. */
  begin(again: { since?: Date }): Promise<DomainWork>
  /** Asks the provider and commits the result. */
  carryOut(work: DomainWork): Promise<Reply[]>
  /** Ends the reservation. If this fails, the reservation lapses after some minutes. */
  abandon(work: DomainWork): Promise<unknown>
  /** Whether the change may run twice. If so, it runs again after a lost connection. */
  isRepeatable: boolean
}

/**
 * Runs a change of a domain while no other is in progress, and returns the response. The provider is asked
 * between two transactions: the first records what is about to happen, the second what happened. If the
 * process stops in between, the next call or scheduled task completes or undoes the change. Throws a
 * Refusal.
 */
export async function runExclusively({
  begin,
  carryOut,
  abandon,
  isRepeatable,
}: Change): Promise<Reply> {
  const start = performance.now()
  let again: { since?: Date } = {}
  let lost: ConnectionLost | undefined
  for (;;) {
    let work: DomainWork | undefined
    try {
      work = await begin(again)
      if (work.verdict === 'answer') {
        return { status: work.status ?? 200, body: work.body ?? '', replayed: work.replayed }
      }
      if (work.verdict === 'work') return only(await carryOut(work))
    } catch (error) {
      if (work) await abandon(work).catch(() => undefined)
      if (isRepeatable && error instanceof ConnectionLost) lost = error
      else throw error instanceof Unreachable && lost ? lost : asRefusal(error)
    }
    const limitMs = lost ? CLIENT_TIME_LIMIT.beginsWithinMs : MAX_WAIT_MS
    if (performance.now() - start > limitMs) {
      throw lost ?? new Refusal('email_provider_unavailable')
    }
    if (work?.since) again = { since: work.since }
    if (work?.verdict !== 'release') await pause(POLL_MS)
  }
}

/** Returns the single row of a function's result. */
export function only<Row>([row]: Row[]): Row {
  if (row === undefined) throw new Error('a database function returned no row')
  return row
}

function asRefusal(error: unknown): unknown {
  if (error instanceof ProviderUnavailable) return new Refusal('email_provider_unavailable')
  if (error instanceof DomainRefused) {
    return new Refusal('validation_error', { name: [error.message] })
  }
  return error
}
