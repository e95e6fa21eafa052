import { concernsAll } from './repeated-call.ts'

export type Batcher<Item, Result> = {
  /** Put an item into the next run; settles with its own result. */
  (item: Item): Promise<Result>
  /** Settles once nothing is under way and nothing waits. */
  idle(): Promise<void>
}

export type BatcherOptions<Item> = {
  /** At most so much weight in one run, unless a single item has more. */
  maxWeight: number
  /** An item's weight, 1 by default. */
  weigh?: (item: Item) => number
}

/** A run that has been out for so long is slow for reasons of its own: others need not wait for it. */
const SECOND_LANE_AFTER_MS = 25

type Waiting<Item, Result> = {
  item: Item
  weight: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Collects the items that arrive while a run is under way and passes them to the next run together:
 * under load one transaction carries many requests, when idle nothing waits. `run` answers with one
 * result for each item, in order. When a run fails, each of its items is run once more alone, so that
 * a bad one fails alone, unless the error concerns all; so `run` must be safe to repeat.
 */
export function createBatcher<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  { maxWeight, weigh = () => 1 }: BatcherOptions<Item>,
): Batcher<Item, Result> {
  let waiting: Waiting<Item, Result>[] = []
  let waitingWeight = 0
  let isScheduled = false
  const startedAt: number[] = []
  let onIdle: (() => void)[] = []

  function schedule() {
    if (isScheduled || waiting.length === 0 || !hasFreeLane()) return
    isScheduled = true
    // After all sockets that are readable now have been read: their requests go out together.
    setImmediate(() => {
      isScheduled = false
      openNext()
    })
  }

  function openNext() {
    if (waiting.length > 0 && hasFreeLane()) void open(take())
  }

  function hasFreeLane(): boolean {
    const [first] = startedAt
    if (first === undefined) return true
    if (startedAt.length > 1) return false
    // What fills a run already gains nothing by waiting for more.
    return waitingWeight >= maxWeight || performance.now() - first > SECOND_LANE_AFTER_MS
  }

  function take(): Waiting<Item, Result>[] {
    let weight = 0
    let count = 0
    for (const entry of waiting) {
      weight += entry.weight
      if (weight > maxWeight && count > 0) break
      count += 1
    }
    const taken = waiting.slice(0, count)
    waiting = waiting.slice(count)
    for (const entry of taken) waitingWeight -= entry.weight
    return taken
  }

  async function open(entries: Waiting<Item, Result>[]) {
    const started = performance.now()
    startedAt.push(started)
    const settle = await attempt(entries)
    startedAt.splice(startedAt.indexOf(started), 1)
    // The next run first: the database works on it while those who got their answers go on.
    openNext()
    settle()
    if (isIdle()) {
      for (const resolve of onIdle) resolve()
      onIdle = []
    }
  }

  /** Runs the entries; answers with what is left to do: telling each its result. */
  async function attempt(entries: Waiting<Item, Result>[]): Promise<() => void> {
    try {
      const results = await run(entries.map((entry) => entry.item))
      if (results.length !== entries.length) {
        throw new Error(`${results.length} results for ${entries.length} items`)
      }
      return () =>
        entries.forEach((entry, place) => {
          entry.resolve(results[place] as Result)
        })
    } catch (error) {
      if (entries.length === 1 || concernsAll(error)) {
        return () => {
          for (const { reject } of entries) reject(error)
        }
      }
      const settles = await Promise.all(entries.map((entry) => attempt([entry])))
      return () => {
        for (const settle of settles) settle()
      }
    }
  }

  function isIdle(): boolean {
    return startedAt.length === 0 && waiting.length === 0
  }

  const batcher = (item: Item) =>
    new Promise<Result>((resolve, reject) => {
      const weight = weigh(item)
      waiting.push({ item, weight, resolve, reject })
      waitingWeight += weight
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
