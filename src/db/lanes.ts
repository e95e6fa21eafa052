/** A run in progress: a shared one has items of several owners, a heavy one has a single owner's. */
export type Lane = { isShared: boolean; weight: number; startedAt: number }

/** How many runs of a batcher are in progress, and whether one more may begin. */
export type Lanes = {
  begin(run: { isShared: boolean; weight: number }): Lane
  end(run: Lane): void
  /** `canFill`: whether what waits fills a run, which then gains nothing by waiting for more. */
  mayBeginShared(canFill: () => boolean): boolean
  mayBeginHeavy(weight: number): boolean
  isEmpty(): boolean
}

/** A shared run that takes longer is slow for reasons of its own: others need not wait for it. */
const SECOND_SHARED_AFTER_MS = 25

/** The same of a heavy run, which may wait for a lock. */
const SECOND_HEAVY_AFTER_MS = 1000

/** A shared run takes some 5 ms; one that takes longer than this competes for the processors. */
const CONTENDED_MS = 10

/** With less rest ten senders of emails to 150 people doubled the time of a small send, on two processors. */
const REST_PER_RUN = 4
const MAX_REST_MS = 1000

/**
 * Two lanes for shared runs and two for heavy ones; the second is open while the first run takes long.
 * After a heavy run beside which shared runs were slow, heavy runs rest for a multiple of its time: the
 * processors that they leave free are those that everybody else waits for. `onRested` is called then.
 */
export function createLanes(maxHeavyWeight: number, onRested: () => void): Lanes {
  const runs = new Set<Lane>()
  let isResting = false
  /** Of the shared runs since the last heavy one. */
  let slowestMs = 0

  const ages = (isShared: boolean) =>
    [...runs]
      .filter((run) => run.isShared === isShared)
      .map(({ startedAt }) => performance.now() - startedAt)

  function rest(runMs: number) {
    isResting = true
    setTimeout(
      () => {
        isResting = false
        onRested()
      },
      Math.min(REST_PER_RUN * runMs, MAX_REST_MS),
    )
  }

  return {
    begin(run) {
      const lane = { ...run, startedAt: performance.now() }
      runs.add(lane)
      return lane
    },
    end(run) {
      runs.delete(run)
      const tookMs = performance.now() - run.startedAt
      if (run.isShared) slowestMs = Math.max(slowestMs, tookMs)
      else {
        // A second heavy run that ends within a rest does not make it longer.
        if (!isResting && slowestMs > CONTENDED_MS) rest(tookMs)
        slowestMs = 0
      }
    },
    mayBeginShared(canFill) {
      const [first, second] = ages(true)
      if (first === undefined) return true
      return second === undefined && (first > SECOND_SHARED_AFTER_MS || canFill())
    },
    mayBeginHeavy(weight) {
      if (isResting) return false
      const [first, second] = ages(false)
      if (first === undefined) return true
      const inProgress = [...runs].find(({ isShared }) => !isShared)?.weight ?? 0
      const fits = inProgress + weight <= maxHeavyWeight
      return second === undefined && first > SECOND_HEAVY_AFTER_MS && fits
    },
    isEmpty: () => runs.size === 0,
  }
}
