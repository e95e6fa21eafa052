/** How much of something the parties that share it hold. */
export type Shares = {
  /**
   * Gives a party `amount` more if its share allows it. One party may hold as much as then stays free:
   * a single one gets half of the total, two get a third each, and a newcomer always finds room.
   */
  take(party: string, amount: number): boolean
  /** Takes back `amount`; a negative one is held from now on whatever the share. */
  giveBack(party: string, amount: number): void
  held(party: string): number
}

/** Shares out `total`. The rule is that of shared-memory switches (Choudhury and Hahne, alpha = 1). */
export function createShares(total: number): Shares {
  const byParty = new Map<string, number>()
  let all = 0

  const held = (party: string) => byParty.get(party) ?? 0
  const change = (party: string, amount: number) => {
    const now = held(party) + amount
    all += amount
    if (now === 0) byParty.delete(party)
    else byParty.set(party, now)
  }
  return {
    take(party, amount) {
      if (held(party) + amount + (all + amount) > total) return false
      change(party, amount)
      return true
    },
    giveBack: (party, amount) => change(party, -amount),
    held,
  }
}
