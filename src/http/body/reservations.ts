import type { Context } from 'koa'
import { Refusal } from '../../errors.ts'
import { UNKNOWN_OWNER } from '../fair-start.ts'
import { GUARANTEED_BYTES, MB } from '../limits.ts'
import { createQuota, largestReservation } from './quota.ts'

/** Every request counts at least this: its connection, headers and objects. */
const REQUEST_BYTES = 16 * 1024

export const inMb = (bytes: number) => `${bytes / MB} MB`

/** Divides the memory that requests in progress count for between organisations. */
export function createReservations(totalBytes: number) {
  const quota = createQuota(totalBytes, GUARANTEED_BYTES)
  /** The reservation of each request in progress. */
  const reservations = new WeakMap<Context['req'], { owner: string; bytes: number }>()

  /** Raises the reservation of a request to `bytes`; throws a Refusal when its owner's quota is used up. */
  function reserve({ req }: Context, owner: string, bytes = 0) {
    const reserved = reservations.get(req)?.bytes ?? 0
    const needed = Math.max(REQUEST_BYTES, bytes)
    if (needed <= reserved) return
    if (!quota.reserve(owner, needed - reserved)) {
      throw overQuota(quota.reservedBy(owner) + needed - reserved)
    }
    reservations.set(req, { owner, bytes: needed })
  }

  /** `needed`: what the owner would have reserved. */
  function overQuota(needed: number) {
    const most = largestReservation(totalBytes)
    const message =
      needed > most
        ? `More than ${inMb(most)} of your requests are in progress, decompressed. Wait for their responses before sending more.`
        : `The requests in progress of all organisations come close to ${inMb(totalBytes)}, decompressed. Try again in a second.`
    return new Refusal('rate_limited', null, { message, retryAfter: 1 })
  }

  /** Replaces the reservation of a request by one for its response, until that is sent or cannot be sent. */
  function reserveResponse({ req, res, response }: Context) {
    const reservation = reservations.get(req)
    if (!reservation) return
    reservations.delete(req)
    const { owner } = reservation
    const bytes = Math.max(REQUEST_BYTES, response.length ?? 0)
    quota.release(owner, reservation.bytes)
    quota.add(owner, bytes)
    const release = () => quota.release(owner, bytes)
    // A response without a socket waits behind another one of its connection, and may never close.
    if (res.closed || !res.socket) release()
    else res.once('close', release)
  }

  return {
    reserve,
    reserveResponse,
    ownerOf: ({ req }: Context) => reservations.get(req)?.owner ?? UNKNOWN_OWNER,
    /** Returns how large the body of a request may become. */
    limitOf: ({ req }: Context, owner: string) =>
      (reservations.get(req)?.bytes ?? 0) + quota.available(owner),
    /** Returns the Refusal for a body over `limitOf`. */
    overLimit: (owner: string) => overQuota(quota.reservedBy(owner) + quota.available(owner) + 1),
    /** Returns the bytes of all requests in progress. */
    total: quota.reserved,
  }
}
