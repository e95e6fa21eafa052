import { Unreachable } from './connection-errors.ts'
import { createLanes } from './lanes.ts'
import { concernsAll, isLockTimeout } from './repeated-call.ts'

export type Batcher<Item, Result> = {
  /**
   * Puts an item into the next run; settles with its own result. An item that is in no run when `signal`
   * aborts is in none from then on and rejects with Unreachable.
   */
  (item: Item, signal?: AbortSignal): Promise<Result>
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

/** Heavy runs in progress have as much weight as so many full runs, or a single item. */
const HEAVY_RUNS = 2

/** An item that so many shared runs left out runs without items of others. */
const MAX_LEFT_OUT = 5

/** What was left out waits so long, then twice as long each time: as a rule a short accept has the lock. */
const LEFT_OUT_WAITS_MS = 10

type Entry<Item, Result> = {
  item: Item
  owner: unknown
  weight: number
  timesLeftOut: number
  signal: AbortSignal | undefined
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/** What waits, by owner; the owner whose turn is next comes first. */
type Queue<Item, Result> = Map<unknown, Entry<Item, Result>[]>

/**
 * Collects the items that arrive while a run is in progress and passes them to the next run together:
 * under load one transaction carries many requests, when idle nothing waits. `run` returns one result
 * for each item, in order. When a run fails, its halves run again one after the other, so that a bad item
 * fails alone, unless the error concerns all; so `run` must be safe to repeat.
 *
 * lanes.ts says how many runs are in progress at a time. With fairness, heavy items run without those of
 * other owners, and `run` may return LEFT_OUT for an item of a shared run.
 */
export function createBatcher<Item, Result>(
  run: (items: Item[], isShared: boolean) => Promise<(Result | typeof LEFT_OUT)[]>,
  { maxWeight, weigh = () => 1, fairness }: BatcherOptions<Item>,
): Batcher<Item, Result> {
  const share = fairness?.share ?? maxWeight
  const maxSharedWeight = fairness?.maxSharedWeight ?? maxWeight
  const shared: Queue<Item, Result> = new Map()
  const heavy: Queue<Item, Result> = new Map()
  const lanes = createLanes(HEAVY_RUNS * maxWeight, schedule)
  /** Owners with a run in progress: in another run they would wait for the locks of the first. */
  const busy = new Set<unknown>()
  let sharedWeight = 0
  let leftOutWaiting = 0
  let isScheduled = false
  let onIdle: (() => void)[] = []

  function put(entry: Entry<Item, Result>, { isFirst = false } = {}) {
    if (entry.signal?.aborted) return entry.reject(notBegun())
    const isShared = !fairness || (entry.weight <= share && entry.timesLeftOut < MAX_LEFT_OUT)
    const queue = isShared ? shared : heavy
    if (isShared) sharedWeight += entry.weight
    const entries = queue.get(entry.owner)
    if (!entries) queue.set(entry.owner, [entry])
    else if (isFirst) entries.unshift(entry)
    else entries.push(entry)
  }

  /** Takes an entry that waits out of its queue; one that is in a run stays there. */
  function abandon(entry: Entry<Item, Result>) {
    for (const queue of [shared, heavy]) {
      const entries = queue.get(entry.owner) ?? []
      const place = entries.indexOf(entry)
      if (place < 0) continue
      entries.splice(place, 1)
      if (entries.length === 0) queue.delete(entry.owner)
      if (queue === shared) sharedWeight -= entry.weight
      entry.reject(notBegun())
    }
    settleIdle()
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
    const kinds = isSharedFirst ? [openShared, openHeavy] : [openHeavy, openShared]
    for (const open of kinds) open()
  }

  function openShared() {
    if (shared.size === 0 || !lanes.mayBeginShared(canFillRun)) return
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

  /** Whether what waits fills a shared run. */
  function canFillRun(): boolean {
    if (sharedWeight < maxSharedWeight) return false
    let weight = 0
    for (const [owner, waiting] of shared) {
      if (!busy.has(owner)) weight += Math.min(share, weightOf(waiting))
      if (weight >= maxSharedWeight) return true
    }
    return false
  }

  function openHeavy() {
    for (const [owner, waiting] of heavy) {
      if (busy.has(owner)) continue
      const part = waiting.slice(0, Math.max(1, countWithin(waiting, maxWeight)))
      // The owner keeps the turn, or light runs of others would keep out a heavy one for good.
      if (!lanes.mayBeginHeavy(weightOf(part))) return
      waiting.splice(0, part.length)
      heavy.delete(owner)
      if (waiting.length > 0) heavy.set(owner, waiting)
      void start(part, false)
    }
  }

  async function start(entries: Entry<Item, Result>[], isShared: boolean) {
    const lane = lanes.begin({ isShared, weight: weightOf(entries) })
    for (const { owner } of entries) busy.add(owner)
    const settle = await attempt(entries, isShared)
    lanes.end(lane)
    for (const { owner } of entries) busy.delete(owner)
    // The next run first: the database works on it while those who got their results go on.
    const leftOut = settle.filter((one) => typeof one !== 'function')
    if (leftOut.length > 0) putAgain(leftOut)
    openRuns({ isSharedFirst: !isShared })
    for (const one of settle) if (typeof one === 'function') one()
    settleIdle()
  }

  function putAgain(entries: Entry<Item, Result>[]) {
    let waitMs = 0
    for (const entry of entries) {
      waitMs = LEFT_OUT_WAITS_MS * 2 ** entry.timesLeftOut
      entry.timesLeftOut += 1
      // It may be heavier than `weigh` knows.
      if (entry.timesLeftOut >= MAX_LEFT_OUT) entry.weight = Math.max(entry.weight, share)
    }
    leftOutWaiting += entries.length
    setTimeout(() => {
      leftOutWaiting -= entries.length
      for (const entry of entries.toReversed()) put(entry, { isFirst: true })
      openRuns()
      settleIdle()
    }, waitMs)
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
      if (entries.length === 1 || concernsAll(error) || (!isShared && isLockTimeout(error))) {
        return entries.map((entry) => () => entry.reject(error))
      }
      const middle = Math.ceil(entries.length / 2)
      const first = await attempt(entries.slice(0, middle), isShared)
      return [...first, ...(await attempt(entries.slice(middle), isShared))]
    }
  }

  function isIdle(): boolean {
    return lanes.isEmpty() && shared.size === 0 && heavy.size === 0 && leftOutWaiting === 0
  }

  function settleIdle() {
    if (!isIdle()) return
    for (const resolve of onIdle) resolve()
    onIdle = []
  }

  const batcher = (item: Item, signal?: AbortSignal) =>
    new Promise<Result>((resolve, reject) => {
      // Without fairness each item has an owner of its own, and turns are the order of arrival.
      const owner = fairness ? fairness.ownerOf(item) : Symbol()
      const weight = weigh(item)
      const entry = { item, owner, weight, timesLeftOut: 0, signal, resolve, reject }
      signal?.addEventListener('abort', () => abandon(entry), { once: true })
      put(entry)
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

function notBegun(): Unreachable {
  return new Unreachable('the database did not take what was before it in time')
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
