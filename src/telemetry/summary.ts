/**
 * Reports events of one kind at most every `everyMs`, however often they happen. `report` receives the
 * latest event and how many there were since the last report.
 */
export function summarise<Event>(report: (event: Event, times: number) => void, everyMs = 1000) {
  const kinds = new Map<string, { latest: Event; times: number }>()
  let timer: NodeJS.Timeout | undefined

  function flush() {
    clearTimeout(timer)
    timer = undefined
    for (const [kind, state] of kinds) {
      // A period without events ends the summary of its kind.
      if (state.times === 0) kinds.delete(kind)
      else report(state.latest, state.times)
      state.times = 0
    }
    if (kinds.size > 0) timer = setTimeout(flush, everyMs).unref()
  }

  return {
    /** Reports the first event of a kind at once, and later ones together. */
    note(kind: string, event: Event) {
      const state = kinds.get(kind)
      if (state) {
        state.latest = event
        state.times += 1
        return
      }
      kinds.set(kind, { latest: event, times: 0 })
      report(event, 1)
      timer ??= setTimeout(flush, everyMs).unref()
    },
    /** Reports what has not been reported yet. */
    flush,
  }
}
