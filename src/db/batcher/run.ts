import { counted } from '../../text/counted.ts'
import { concernsAll, isTimeout } from '../repeated-call.ts'

/** The result of an item that a shared run left out because the other items would have waited for it. */
export const LEFT_OUT = Symbol('left out')

/** Processes items together and returns a result for each, in order. It is repeated when it fails. */
export type Run<Item, Result> = (
  items: Item[],
  isShared: boolean,
) => Promise<(Result | typeof LEFT_OUT)[]>

/** An item, and the functions that settle it. */
export type Entry<Item, Result> = {
  item: Item
  owner: unknown
  weight: number
  timesLeftOut: number
  state: 'waiting' | 'running' | 'settled'
  resolve(result: Result): void
  reject(error: unknown): void
}

export type Outcome<Item, Result> = {
  /** Settles the entries that are not settled yet; the caller may begin the next run first. */
  settle(): void
  leftOut: Entry<Item, Result>[]
}

/** How many parts run at a time after a time-out, so that one that waits for a lock does not delay the others. */
const PARTS_AFTER_TIMEOUT = 4

/**
 * Runs entries together. If that fails, runs parts of them, so that an item that cannot be processed fails alone.
 * After a time-out, which the lock of one owner may cause, a part has the entries of one owner; after another error
 * it is a half. Entries settle with their part. An error that concerns all, or a time-out with a single owner, fails
 * all entries. Never rejects.
 */
export async function runEntries<Item, Result>(
  run: Run<Item, Result>,
  entries: readonly Entry<Item, Result>[],
  isShared: boolean,
): Promise<Outcome<Item, Result>> {
  const waiting = entries.filter(({ state }) => state === 'waiting')
  if (waiting.length === 0) return { settle() {}, leftOut: [] }
  for (const entry of waiting) entry.state = 'running'
  try {
    const results = await run(
      waiting.map(({ item }) => item),
      isShared,
    )
    if (results.length !== waiting.length) {
      throw new Error(`${counted(results.length, 'result')} for ${counted(waiting.length, 'item')}`)
    }
    return succeeded(waiting, results)
  } catch (error) {
    const owners = Map.groupBy(waiting, ({ owner }) => owner)
    const isTimedOut = isTimeout(error)
    if (waiting.length === 1 || concernsAll(error) || (isTimedOut && owners.size === 1)) {
      return failed(waiting, error)
    }
    for (const entry of waiting) entry.state = 'waiting'
    const middle = Math.ceil(waiting.length / 2)
    return isTimedOut
      ? runParts(run, [...owners.values()], isShared, PARTS_AFTER_TIMEOUT)
      : runParts(run, [waiting.slice(0, middle), waiting.slice(middle)], isShared, 1)
  }
}

/** Runs parts, `atATime` at a time; each settles when it ends. */
async function runParts<Item, Result>(
  run: Run<Item, Result>,
  parts: Entry<Item, Result>[][],
  isShared: boolean,
  atATime: number,
): Promise<Outcome<Item, Result>> {
  const leftOut: Entry<Item, Result>[] = []
  const next = parts.values()
  const runNext = async () => {
    for (const part of next) {
      const outcome = await runEntries(run, part, isShared)
      outcome.settle()
      leftOut.push(...outcome.leftOut)
    }
  }
  await Promise.all(Array.from({ length: atATime }, runNext))
  return { settle() {}, leftOut }
}

function succeeded<Item, Result>(
  entries: Entry<Item, Result>[],
  results: (Result | typeof LEFT_OUT)[],
): Outcome<Item, Result> {
  const leftOut = entries.filter((_, place) => results[place] === LEFT_OUT)
  for (const entry of leftOut) entry.state = 'waiting'
  return {
    leftOut,
    settle() {
      for (const [place, entry] of entries.entries()) {
        const result = results[place] as Result | typeof LEFT_OUT
        if (result === LEFT_OUT) continue
        entry.state = 'settled'
        entry.resolve(result)
      }
    },
  }
}

function failed<Item, Result>(
  entries: Entry<Item, Result>[],
  error: unknown,
): Outcome<Item, Result> {
  return {
    leftOut: [],
    settle() {
      for (const entry of entries) {
        entry.state = 'settled'
        entry.reject(error)
      }
    },
  }
}
