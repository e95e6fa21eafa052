import type { Time } from '../../time/index.ts'

/** A run in progress: a shared run has items of several owners, a heavy run those of one owner. */
type Lane = { isShared: boolean; weight: number; startedAt: number; cancelTimer(): void }

type LanesOptions = {
  /** The largest weight of a shared run; a run that has it gains nothing by waiting. */
  maxSharedWeight: number
  /** The least weight of a shared run that begins beside another one which does not take long; absent: none begins. */
  overlapWeight: number | undefined
  /** The largest weight of the heavy runs in progress, unless a single one has more. */
  maxHeavyWeight: number
  time: Time
  /** Called when a run may begin although none has ended. */
  onMayBegin(): void
}

/** A shared run that takes longer has a cause of its own; the next one need not wait for it. */
const SECOND_SHARED_AFTER_MS = 25

/** The same for a heavy run, which may wait for a lock. */
const SECOND_HEAVY_AFTER_MS = 1000

/**
 * A shared run that begins beside another one has at least this share of its weight: smaller runs would cost the
 * database more. The process prepares a run and handles the results of another one while the database is at work.
 */
const OVERLAP_SHARE = 0.75

/** A shared run takes some 5 ms; one that takes longer than this competes for the processors. */
const CONTENDED_MS = 10

/** Without a shared run for this time, a second heavy run delays no other sender. */
const QUIET_MS = 1000

/** With a shorter rest, ten senders of emails to 150 recipients doubled the time of a small send, on two cores. */
const REST_PER_RUN = 4
const MAX_REST_MS = 1000

/**
 * Keeps the runs of a batcher that are in progress, and decides whether one more may begin.
 * There are two lanes for shared runs and two for heavy runs; the second opens while the first run takes long, with
 * `overlapWeight` also for a shared run of about the weight of the first, and for a heavy run if there were no
 * shared runs lately. If shared runs were slow beside a heavy run, heavy runs then rest for a multiple of its time,
 * which leaves the processors to everybody else.
 */
export function createLanes({
  maxHeavyWeight,
  maxSharedWeight,
  overlapWeight,
  time,
  onMayBegin,
}: LanesOptions) {
  const runs = new Set<Lane>()
  let isResting = false
  /** The slowest shared run that ended beside the present heavy runs. */
  let slowestSharedMs = 0
  /** When a shared run was last in progress. */
  let sharedAt = Number.NEGATIVE_INFINITY

  const inProgress = (isShared: boolean) => [...runs].filter((run) => run.isShared === isShared)

  /** Returns whether one more run of a kind may begin beside those in progress. */
  function hasRoom(isShared: boolean, mayOverlap = (_first: Lane) => false): boolean {
    const [first, second] = inProgress(isShared)
    if (first === undefined) return true
    if (second !== undefined) return false
    const limitMs = isShared ? SECOND_SHARED_AFTER_MS : SECOND_HEAVY_AFTER_MS
    return time.now() - first.startedAt > limitMs || mayOverlap(first)
  }

  const isQuiet = () => inProgress(true).length === 0 && time.now() - sharedAt > QUIET_MS

  function rest(runMs: number) {
    isResting = true
    time.after(Math.min(REST_PER_RUN * runMs, MAX_REST_MS), () => {
      isResting = false
      onMayBegin()
    })
  }

  return {
    begin({ isShared, weight }: Pick<Lane, 'isShared' | 'weight'>): Lane {
      if (!isShared && inProgress(false).length === 0) slowestSharedMs = 0
      // Without new items nothing else would check whether the second lane is open.
      const opensMs = isShared ? SECOND_SHARED_AFTER_MS : SECOND_HEAVY_AFTER_MS
      const cancelTimer = time.after(opensMs + 1, onMayBegin)
      const lane = { isShared, weight, startedAt: time.now(), cancelTimer }
      runs.add(lane)
      return lane
    },
    end(run: Lane) {
      runs.delete(run)
      run.cancelTimer()
      const tookMs = time.now() - run.startedAt
      if (run.isShared) {
        slowestSharedMs = Math.max(slowestSharedMs, tookMs)
        sharedAt = time.now()
      }
      // A second heavy run that ends within a rest does not make it longer.
      else if (!isResting && slowestSharedMs > CONTENDED_MS) rest(tookMs)
    },
    /** `reaches` returns whether the waiting items can make a run of that weight. */
    mayBeginShared: (reaches: (weight: number) => boolean) =>
      hasRoom(true, ({ weight }) =>
        reaches(
          Math.min(maxSharedWeight, Math.max(overlapWeight ?? Infinity, OVERLAP_SHARE * weight)),
        ),
      ),
    mayBeginHeavy(weight: number, isSharedWaiting: boolean): boolean {
      if (isResting || !hasRoom(false, () => !isSharedWaiting && isQuiet())) return false
      const [first] = inProgress(false)
      return first === undefined || first.weight + weight <= maxHeavyWeight
    },
    isEmpty: () => runs.size === 0,
  }
}
