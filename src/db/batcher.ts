import { concernsAll } from './repeated-call.ts'

export type Batcher<Item, Result> = {
  /** Puts an item into the next run; settles with its own result. */
  (item: Item): Promise<Result>
  /** Settles once nothing is in progress and nothing waits. */
  idle(): Promise<void>
}

/** The result of an item that a shared run left out, as it would have kept the others waiting. */
export const LEFT_OUT = Symbol('left out')

/** Owners take turns: what one puts in delays the items of others by little. */
export type Fairness<Item> = {
  /** Whose item it is. An owner is in one run at a time. */
  ownerOf(item: Item): string
  /** An owner has at most so much weight in a shared run; a heavier item runs without those of others. */
  share: number
  /** At most so much weight in a shared run. */
  maxSharedWeight: number
}

export type BatcherOptions<Item> = {
  /** At most so much weight in one run, unless a single item has more. */
  maxWeight: number
  /** An item's weight, 1 by default. */
  weigh?: (item: Item) => number
  fairness?: Fairness<Item>
}

/** A shared run that takes longer is slow for reasons of its own: others need not wait for it. */
const SECOND_LANE_AFTER_MS = 25

/** Runs of a single owner, at most so many at a time, with as much weight as so many full runs or a single item. */
const OWN_LANES = 2

/** An item that so many shared runs left out runs without items of others. */
const MAX_LEFT_OUT = 3

type Entry<Item, Result> = {
  item: Item
  owner: unknown
  weight: number
  timesLeftOut: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** What waits, by owner; the owner whose turn is next comes first. */
type Queue<Item, Result> = Map<unknown, Entry<Item, Result>[]>

type Run<Item, Result> = { entries: Entry<Item, Result>[]; isShared: boolean; startedAt: number }

/**
 * Collects the items that arrive while a run is in progress and passes them to the next run together:
 * under load one transaction carries many requests, when idle nothing waits. `run` returns one result
 * for each item, in order. When a run fails, each of its items runs once more alone, so that a bad one
 * fails alone, unless the error concerns all; so `run` must be safe to repeat.
 *
 * Shared runs have two lanes: the second opens when a run can be filled, or when the first run takes
 * long. With fairness, heavy items have lanes of their own, in which a run has items of one owner, and
 * `run` may return LEFT_OUT for an item of a shared run.
 */
export function createBatcher<Item, Result>(
  run: (items: Item[], isShared: boolean) => Promise<(Result | typeof LEFT_OUT)[]>,
  { maxWeight, weigh = () => 1, fairness }: BatcherOptions<Item>,
): Batcher<Item, Result> {
  const share = fairness?.share ?? maxWeight
  const maxSharedWeight = fairness?.maxSharedWeight ?? maxWeight
  const shared: Queue<Item, Result> = new Map()
  const own: Queue<Item, Result> = new Map()
  const runs = new Set<Run<Item, Result>>()
  /** Owners with a run in progress: in another run they would wait for the locks of the first. */
  const busy = new Set<unknown>()
  let sharedWeight = 0
  let isScheduled = false
  let onIdle: (() => void)[] = []

  function put(entry: Entry<Item, Result>, { isFirst = false } = {}) {
    const isShared = !fairness || (entry.weight <= share && entry.timesLeftOut < MAX_LEFT_OUT)
    const queue = isShared ? shared : own
    if (isShared) sharedWeight += entry.weight
    const entries = queue.get(entry.owner)
    if (!entries) queue.set(entry.owner, [entry])
    else if (isFirst) entries.unshift(entry)
    else entries.push(entry)
  }

  function schedule() {
    if (isScheduled) return
    isScheduled = true
    // After all sockets that are readable now have been read: their requests go out together.
    setImmediate(() => {
      isScheduled = false
      openRuns()
    })
  }

  /** `isSharedFirst`: of an owner who waits for both kinds of run. */
  function openRuns({ isSharedFirst = false } = {}) {
    const kinds = isSharedFirst ? [openShared, openOwn] : [openOwn, openShared]
    for (const open of kinds) open()
  }

  function openShared() {
    if (shared.size === 0 || !hasSharedLane()) return
    const entries: Entry<Item, Result>[] = []
    const others: [unknown, Entry<Item, Result>[]][] = []
    let weight = 0
    for (const [owner, waiting] of shared) {
      if (busy.has(owner)) continue
      const taken = countWithin(waiting, Math.min(share, maxSharedWeight - weight))
      if (taken === 0 && entries.length > 0) break
      const part = waiting.splice(0, Math.max(1, taken))
      entries.push(...part)
      weight += weightOf(part)
      shared.delete(owner)
      if (waiting.length > 0) others.push([owner, waiting])
      if (weight >= maxSharedWeight) break
    }
    // Their next turn comes after those of all who wait.
    for (const [owner, waiting] of others) shared.set(owner, waiting)
    sharedWeight -= weight
    if (entries.length > 0) void start(entries, true)
  }

  function hasSharedLane(): boolean {
    const [first, second] = [...runs].filter(({ isShared }) => isShared)
    if (!first) return true
    if (second) return false
    return performance.now() - first.startedAt > SECOND_LANE_AFTER_MS || canFillRun()
  }

  /** What fills a run already gains nothing by waiting for more. */
  function canFillRun(): boolean {
    if (sharedWeight < maxSharedWeight) return false
    let weight = 0
    for (const [owner, waiting] of shared) {
      if (!busy.has(owner)) weight += Math.min(share, weightOf(waiting))
      if (weight >= maxSharedWeight) return true
    }
    return false
  }

  function openOwn() {
    for (const [owner, waiting] of own) {
      if (busy.has(owner)) continue
      const inProgress = [...runs].filter(({ isShared }) => !isShared)
      const part = waiting.slice(0, Math.max(1, countWithin(waiting, maxWeight)))
      const weight = weightOf(inProgress.flatMap(({ entries }) => entries)) + weightOf(part)
      const isFree = inProgress.length < OWN_LANES && weight <= OWN_LANES * maxWeight
      // The owner keeps the turn, or light runs of others would keep out a heavy one for good.
      if (inProgress.length > 0 && !isFree) return
      waiting.splice(0, part.length)
      own.delete(owner)
      if (waiting.length > 0) own.set(owner, waiting)
      void start(part, false)
    }
  }

  async function start(entries: Entry<Item, Result>[], isShared: boolean) {
    const current = { entries, isShared, startedAt: performance.now() }
    runs.add(current)
    for (const { owner } of entries) busy.add(owner)
    const settle = await attempt(entries, isShared)
    runs.delete(current)
    for (const { owner } of entries) busy.delete(owner)
    // The next run first: the database works on it while those who got their results go on.
    const leftOut = settle.filter((one) => typeof one !== 'function')
    for (const entry of leftOut.toReversed()) putAgain(entry)
    openRuns({ isSharedFirst: !isShared })
    for (const one of settle) if (typeof one === 'function') one()
    if (isIdle()) {
      for (const resolve of onIdle) resolve()
      onIdle = []
    }
  }

  function putAgain(entry: Entry<Item, Result>) {
    entry.timesLeftOut += 1
    // It may be heavier than `weigh` knows.
    if (entry.timesLeftOut >= MAX_LEFT_OUT) entry.weight = Math.max(entry.weight, share)
    put(entry, { isFirst: true })
  }

  /** Runs the entries; returns what settles each, or the entry itself when it was left out. */
  async function attempt(
    entries: Entry<Item, Result>[],
    isShared: boolean,
  ): Promise<((() => void) | Entry<Item, Result>)[]> {
    try {
      const results = await run(
        entries.map((entry) => entry.item),
        isShared,
      )
      if (results.length !== entries.length) {
        throw new Error(`${results.length} results for ${entries.length} items`)
      }
      return entries.map((entry, place) => {
        const result = results[place] as Result | typeof LEFT_OUT
        return result === LEFT_OUT ? entry : () => entry.resolve(result)
      })
    } catch (error) {
      if (entries.length === 1 || concernsAll(error)) {
        return entries.map((entry) => () => entry.reject(error))
      }
      return (await Promise.all(entries.map((entry) => attempt([entry], isShared)))).flat()
    }
  }

  function isIdle(): boolean {
    return runs.size === 0 && shared.size === 0 && own.size === 0
  }

  const batcher = (item: Item) =>
    new Promise<Result>((resolve, reject) => {
      // Without fairness each item has an owner of its own, and turns are the order of arrival.
      const owner = fairness ? fairness.ownerOf(item) : Symbol()
      put({ item, owner, weight: weigh(item), timesLeftOut: 0, resolve, reject })
      schedule()
    })
  const idle = () =>
    isIdle()
      ? Promise.resolve()
      : new Promise<void>((resolve) => {
          onIdle.push(resolve)
        })
  return Object.assign(batcher, { idle })
}

/** How many of the first entries have that weight together. */
function countWithin(entries: { weight: number }[], maxWeight: number): number {
  let weight = 0
  for (const [place, entry] of entries.entries()) {
    weight += entry.weight
    if (weight > maxWeight) return place
  }
  return entries.length
}

function weightOf(entries: { weight: number }[]): number {
  return entries.reduce((sum, { weight }) => sum + weight, 0)
}
