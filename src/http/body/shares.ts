/** How much of something the parties that share it hold. */
export type Shares = {
  /** Gives a party `amount` more if its share allows it. */
  take(party: string, amount: number): boolean
  /** Takes back `amount`; a negative one is held from now on whatever the share. */
  giveBack(party: string, amount: number): void
  held(party: string): number
  /** How much more a party may have now. */
  room(party: string): number
  /** What all parties hold together. */
  all(): number
}

/** What a party may hold beside what it leaves free: a third of that, hence alone a quarter of all. */
const FREE_FOR_EACH_HELD = 3

/**
 * Shares out `total`: one party may hold a third of what then stays free, and `guaranteed` in any case.
 * Ten that take all they get leave a twentieth to others. The rule is that of buffers in switches
 * (Choudhury and Hahne, dynamic queue length thresholds).
 */
export function createShares(total: number, guaranteed: number): Shares {
  const byParty = new Map<string, number>()
  let all = 0

  const held = (party: string) => byParty.get(party) ?? 0
  const change = (party: string, amount: number) => {
    const now = held(party) + amount
    all += amount
    if (now === 0) byParty.delete(party)
    else byParty.set(party, now)
  }
  const room = (party: string) => {
    const share = (total - all - FREE_FOR_EACH_HELD * held(party)) / (FREE_FOR_EACH_HELD + 1)
    return Math.max(0, Math.floor(share), guaranteed - held(party))
  }
  return {
    take(party, amount) {
      if (amount > room(party)) return false
      change(party, amount)
      return true
    },
    room,
    giveBack: (party, amount) => change(party, -amount),
    held,
    all: () => all,
  }
}

/** The most that one party may hold of `total`. */
export const largestShare = (total: number) => total / (FREE_FOR_EACH_HELD + 1)
