/** The error of a message whose attempt had not begun when the worker stopped. Its job is retried. */
export const NOT_STARTED = 'the worker stopped before the attempt'

export type Places = ReturnType<typeof createPlaces>

/** Limits the attempts in progress, however many messages the jobs in progress have. */
export function createPlaces(size: number, stopping?: AbortSignal) {
  let taken = 0
  let onFree: () => void = () => undefined
  const waiting: PromiseWithResolvers<void>[] = []
  stopping?.addEventListener('abort', () => {
    for (const { reject } of waiting.splice(0)) reject(new Error(NOT_STARTED))
  })
  function leave() {
    const next = waiting.shift()
    if (next) return next.resolve()
    taken -= 1
    onFree()
  }
  return {
    /**
     * Takes a place, at once or when one is free, first come, first served. Throws NOT_STARTED if `signal` is aborted
     * by then, or if the worker stops meanwhile.
     */
    async take(signal: AbortSignal): Promise<void> {
      if (taken < size) {
        taken += 1
        return
      }
      if (stopping?.aborted) throw new Error(NOT_STARTED)
      const place = Promise.withResolvers<void>()
      waiting.push(place)
      await place.promise
      if (!signal.aborted) return
      leave()
      throw new Error(NOT_STARTED)
    },
    leave,
    /** Returns whether a place is free besides so many. */
    hasRoom: (besides = 0) => taken + besides < size,
    /** Sets what is called when a place is free that nothing waits for. */
    onFree(listener: () => void) {
      onFree = listener
    },
  }
}
