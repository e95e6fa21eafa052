import { processTime, type Time } from '../../time/index.ts'
import { Unreachable } from '../connection-errors.ts'
import { createLanes } from './lanes.ts'
import { createBatchQueue, weightOf } from './queue.ts'
import { type Entry, type Run, runEntries } from './run.ts'

export type Batcher<Item, Result> = {
  /**
   * Puts an item into the next run; settles with the result of that item. If `signal` is aborted while the item
   * waits, the item is removed and rejects with Unreachable.
   */
  (item: Item, signal?: AbortSignal): Promise<Result>
  /** Settles when no item waits and no run is in progress. */
  idle(): Promise<void>
}

/** Owners share the runs in rotation: the items of one owner delay those of others by little. */
export type Fairness<Item> = {
  /** Returns the owner of an item. An owner has items in one run at a time. */
  ownerOf(item: Item): string
  /** The largest weight of one owner in a shared run. A heavier item runs without items of other owners. */
  share: number
  /** The largest weight of a shared run. */
  maxSharedWeight: number
}

export type BatcherOptions<Item> = {
  /** The largest weight of a run, unless a single item has more. */
  maxWeight: number
  /** Returns the weight of an item; defaults to 1. */
  weigh?: (item: Item) => number
  fairness?: Fairness<Item>
  /** Items of at least this weight need not wait for the end of a shared run in progress (lanes.ts). */
  overlapWeight?: number
  time?: Time
}

/** Heavy runs in progress have at most the weight of this many full runs, or a single item. */
const HEAVY_RUNS = 2

/** An item that this many shared runs left out runs without items of other owners. */
const MAX_LEFT_OUT = 5

/** The wait of an item that was left out; it doubles each time. As a rule a short accept holds the lock. */
const LEFT_OUT_WAITS_MS = 10

/**
 * Collects the items that arrive while a run is in progress, and passes them to the next run together. Under load
 * one transaction carries many requests; when idle, no item waits. With fairness, heavy items run without those of
 * other owners, and `run` may return LEFT_OUT for an item of a shared run. run.ts decides what happens after a
 * failed run, lanes.ts how many runs are in progress at a time.
 */
export function createBatcher<Item, Result>(
  run: Run<Item, Result>,
  { maxWeight, weigh = () => 1, fairness, overlapWeight, time = processTime }: BatcherOptions<Item>,
): Batcher<Item, Result> {
  const share = fairness?.share ?? maxWeight
  const limits = { share, maxWeight: fairness?.maxSharedWeight ?? maxWeight }
  const shared = createBatchQueue<Entry<Item, Result>>()
  const heavy = createBatchQueue<Entry<Item, Result>>()
  const lanes = createLanes({
    maxHeavyWeight: HEAVY_RUNS * maxWeight,
    maxSharedWeight: limits.maxWeight,
    overlapWeight,
    time,
    onMayBegin: schedule,
  })
  /** Owners with a run in progress. A second run would wait for the locks of the first. */
  const busy = new Set<unknown>()
  let leftOutWaiting = 0
  let isScheduled = false
  let onIdle: (() => void)[] = []

  function put(entry: Entry<Item, Result>, options?: { isFirst: boolean }) {
    if (entry.state === 'settled') return
    const isShared = !fairness || (entry.weight <= share && entry.timesLeftOut < MAX_LEFT_OUT)
    const queue = isShared ? shared : heavy
    queue.put(entry, options)
  }

  function abandon(entry: Entry<Item, Result>) {
    if (entry.state !== 'waiting') return
    if (!shared.remove(entry)) heavy.remove(entry)
    entry.state = 'settled'
    entry.reject(new Unreachable('the database did not process the calls before this one in time'))
    settleIdle()
  }

  function schedule() {
    if (isScheduled) return
    isScheduled = true
    // After all sockets that are readable now have been read, so that their requests share a run.
    setImmediate(() => {
      isScheduled = false
      openRuns()
    })
  }

  /** `isSharedFirst` decides for an owner with items of both kinds. */
  function openRuns({ isSharedFirst = false } = {}) {
    const kinds = isSharedFirst ? [openShared, openHeavy] : [openHeavy, openShared]
    for (const open of kinds) open()
  }

  const isReached = (weight: number) => shared.reaches(weight, busy, share)

  function openShared() {
    if (shared.isEmpty() || !lanes.mayBeginShared(isReached)) return
    const entries = shared.takeOfSeveral(busy, limits)
    if (entries.length > 0) void start(entries, true)
  }

  function openHeavy() {
    for (;;) {
      const entries = heavy.takeOfOne(busy, maxWeight, (weight) =>
        lanes.mayBeginHeavy(weight, !shared.isEmpty()),
      )
      if (entries.length === 0) return
      void start(entries, false)
    }
  }

  async function start(entries: Entry<Item, Result>[], isShared: boolean) {
    const lane = lanes.begin({ isShared, weight: weightOf(entries) })
    for (const { owner } of entries) busy.add(owner)
    const { settle, leftOut } = await runEntries(run, entries, isShared)
    lanes.end(lane)
    for (const { owner } of entries) busy.delete(owner)
    putAgain(leftOut)
    // The next run begins first, so that the database works while callers process their results.
    openRuns({ isSharedFirst: !isShared })
    settle()
    settleIdle()
  }

  /** Puts entries that were left out back in the queue, each when its wait is over. */
  function putAgain(entries: Entry<Item, Result>[]) {
    leftOutWaiting += entries.length
    for (const [times, group] of Map.groupBy(entries, ({ timesLeftOut }) => timesLeftOut)) {
      time.after(LEFT_OUT_WAITS_MS * 2 ** times, () => {
        leftOutWaiting -= group.length
        for (const entry of group.toReversed()) {
          entry.timesLeftOut += 1
          // It may be heavier than `weigh` returned.
          if (entry.timesLeftOut >= MAX_LEFT_OUT) entry.weight = Math.max(entry.weight, share)
          put(entry, { isFirst: true })
        }
        openRuns()
        settleIdle()
      })
    }
  }

  function isIdle(): boolean {
    return lanes.isEmpty() && shared.isEmpty() && heavy.isEmpty() && leftOutWaiting === 0
  }

  function settleIdle() {
    if (!isIdle()) return
    for (const resolve of onIdle) resolve()
    onIdle = []
  }

  const batcher = (item: Item, signal?: AbortSignal) =>
    new Promise<Result>((resolve, reject) => {
      const entry: Entry<Item, Result> = {
        item,
        // Without fairness each item has another owner, so items run in the order of arrival.
        owner: fairness ? fairness.ownerOf(item) : Symbol(),
        weight: weigh(item),
        timesLeftOut: 0,
        state: 'waiting',
        resolve,
        reject,
      }
      if (signal?.aborted) return abandon(entry)
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

/** The most items in one commit. A larger transaction would only delay its first items. */
export const MAX_IN_ONE_COMMIT = 500

/** Creates a batcher of items that have no result of their own. */
export function createRecorder<Item>(
  record: (items: Item[]) => Promise<unknown>,
): Batcher<Item, null> {
  const run = async (items: Item[]) => {
    await record(items)
    return items.map(() => null)
  }
  return createBatcher(run, { maxWeight: MAX_IN_ONE_COMMIT })
}
