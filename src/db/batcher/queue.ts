type Waiting = { owner: unknown; weight: number }

type SharedLimits = {
  /** The largest weight of one owner. */
  share: number
  /** The largest weight of a run. */
  maxWeight: number
}

/** Keeps the items that wait for a run, by owner. Owners rotate: the owner who is next comes first. */
export function createBatchQueue<Entry extends Waiting>() {
  const byOwner = new Map<unknown, Entry[]>()
  let allWeight = 0

  /** Takes the first entries of an owner, and the owner out of the queue. */
  function take(owner: unknown, entries: Entry[], count: number): Entry[] {
    const taken = entries.splice(0, count)
    byOwner.delete(owner)
    allWeight -= weightOf(taken)
    return taken
  }

  /** Puts an owner behind all others. */
  function putLast(owner: unknown, entries: Entry[]) {
    if (entries.length > 0) byOwner.set(owner, entries)
  }

  return {
    /** Puts an entry behind those of its owner, or before them. */
    put(entry: Entry, { isFirst = false } = {}) {
      const entries = byOwner.get(entry.owner)
      if (!entries) byOwner.set(entry.owner, [entry])
      else if (isFirst) entries.unshift(entry)
      else entries.push(entry)
      allWeight += entry.weight
    },

    /** Returns whether the entry was in the queue. */
    remove(entry: Entry): boolean {
      const entries = byOwner.get(entry.owner) ?? []
      const place = entries.indexOf(entry)
      if (place < 0) return false
      entries.splice(place, 1)
      if (entries.length === 0) byOwner.delete(entry.owner)
      allWeight -= entry.weight
      return true
    },

    isEmpty: () => byOwner.size === 0,

    /** Takes entries of the owners that are not busy, in order, until the limits are reached; at least one entry. */
    takeOfSeveral(busy: ReadonlySet<unknown>, { share, maxWeight }: SharedLimits): Entry[] {
      const taken: Entry[] = []
      const left: [unknown, Entry[]][] = []
      let weight = 0
      for (const [owner, entries] of byOwner) {
        if (busy.has(owner)) continue
        const count = countWithin(entries, Math.min(share, maxWeight - weight))
        if (count === 0 && taken.length > 0) break
        const part = take(owner, entries, Math.max(1, count))
        taken.push(...part)
        left.push([owner, entries])
        weight += weightOf(part)
        if (weight >= maxWeight) break
      }
      for (const [owner, entries] of left) putLast(owner, entries)
      return taken
    },

    /** Returns whether takeOfSeveral() would take entries of at least this weight. */
    reaches(least: number, busy: ReadonlySet<unknown>, share: number): boolean {
      if (allWeight < least) return false
      let weight = 0
      for (const [owner, entries] of byOwner) {
        if (!busy.has(owner)) weight += Math.min(share, weightOf(entries))
        if (weight >= least) return true
      }
      return false
    },

    /**
     * Takes entries of the first owner that is not busy, with `maxWeight` together, or a single heavier one. Takes
     * none if `mayTake` refuses their weight; then the owner stays first, because otherwise lighter runs of others
     * could delay a heavy one without end.
     */
    takeOfOne(
      busy: ReadonlySet<unknown>,
      maxWeight: number,
      mayTake: (weight: number) => boolean,
    ): Entry[] {
      for (const [owner, entries] of byOwner) {
        if (busy.has(owner)) continue
        const count = Math.max(1, countWithin(entries, maxWeight))
        const weight = weightOf(entries.slice(0, count))
        if (!mayTake(weight)) return []
        const taken = take(owner, entries, count)
        putLast(owner, entries)
        return taken
      }
      return []
    },
  }
}

export function weightOf(entries: readonly Waiting[]): number {
  return entries.reduce((sum, { weight }) => sum + weight, 0)
}

/** Returns how many of the first entries have that weight together. */
function countWithin(entries: readonly Waiting[], maxWeight: number): number {
  let weight = 0
  const place = entries.findIndex((entry) => {
    weight += entry.weight
    return weight > maxWeight
  })
  return place < 0 ? entries.length : place
}
