import type { Context } from 'koa'
import { Refusal } from '../../errors.ts'
import { UNKNOWN_OWNER } from '../fair-start.ts'
import { GUARANTEED_BYTES, MB } from '../limits.ts'
import { createQuota, largestReservation } from './quota.ts'

/** Every request counts at least this: its connection, headers and objects. */
const REQUEST_BYTES = 16 * 1024

export const inMb = (bytes: number) => `${bytes / MB} MB`

/** What a request in progress counts for, kept in its state. */
type Reservation = { owner: string; bytes: number }

const reservationOf = ({ state }: Context): Reservation | undefined => state.reservation

/** Divides the memory that requests in progress count for between organisations. */
export function createReservations(totalBytes: number) {
  const quota = createQuota(totalBytes, GUARANTEED_BYTES)
  /** Raises the reservation of a request to `bytes`; throws a Refusal when its owner's quota is used up. */
  function reserve(ctx: Context, owner: string, bytes = 0) {
    const reserved = reservationOf(ctx)?.bytes ?? 0
    const needed = Math.max(REQUEST_BYTES, bytes)
    if (needed <= reserved) return
    if (!quota.reserve(owner, needed - reserved)) {
      throw overQuota(quota.reservedBy(owner) + needed - reserved)
    }
    ctx.state.reservation = { owner, bytes: needed } satisfies Reservation
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
  function reserveResponse(ctx: Context) {
    const reservation = reservationOf(ctx)
    if (!reservation) return
    ctx.state.reservation = undefined
    const { res, response } = ctx
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
    ownerOf: (ctx: Context) => reservationOf(ctx)?.owner ?? UNKNOWN_OWNER,
    /** Returns how large the body of a request may become. */
    limitOf: (ctx: Context, owner: string) =>
      (reservationOf(ctx)?.bytes ?? 0) + quota.available(owner),
    /** Returns the Refusal for a body over `limitOf`. */
    overLimit: (owner: string) => overQuota(quota.reservedBy(owner) + quota.available(owner) + 1),
    /** Returns the bytes of all requests in progress. */
    total: quota.reserved,
  }
}
