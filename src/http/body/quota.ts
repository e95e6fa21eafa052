/** An owner may reserve a third of what it leaves free: alone, a quarter of the total. */
const FREE_PER_RESERVED = 3

/**
 * Divides `total` between owners: one owner may reserve a third of what then stays free, and `guaranteed` in any
 * case. Ten owners that reserve all they can leave a twentieth to others. The rule comes from buffers in
 * switches (Choudhury and Hahne, dynamic queue length thresholds).
 */
export function createQuota(total: number, guaranteed: number) {
  const byOwner = new Map<string, number>()
  let reserved = 0

  const reservedBy = (owner: string) => byOwner.get(owner) ?? 0

  /** Adds `amount` to what the owner has reserved, whatever the limit. */
  const add = (owner: string, amount: number) => {
    const sum = reservedBy(owner) + amount
    reserved += amount
    if (sum === 0) byOwner.delete(owner)
    else byOwner.set(owner, sum)
  }

  /** Returns how much more the owner may reserve now. */
  const available = (owner: string) => {
    const own = reservedBy(owner)
    const limit = (total - reserved - FREE_PER_RESERVED * own) / (FREE_PER_RESERVED + 1)
    return Math.max(0, Math.floor(limit), guaranteed - own)
  }

  return {
    /** Reserves `amount` if the owner's limit allows it; returns whether it did. */
    reserve(owner: string, amount: number): boolean {
      if (amount > available(owner)) return false
      add(owner, amount)
      return true
    },
    add,
    release: (owner: string, amount: number) => add(owner, -amount),
    reservedBy,
    available,
    /** Returns how much all owners have reserved together. */
    reserved: () => reserved,
  }
}

/** Returns the most that one owner can reserve of `total`. */
export const largestReservation = (total: number) => total / (FREE_PER_RESERVED + 1)
