/**
 * The workers of a pool pass it before each job. Workers that wait for a job have passed it already, so at most
 * `maxAsking` do: the jobs that arrive together may have several messages each, and would be lost to other
 * processes while their messages wait for a place.
 */
export function createGate({ isFull, maxAsking }: { isFull(): boolean; maxAsking: number }) {
  let asking = 0
  let isOpen = false
  const waiting: ((flags: null) => void)[] = []
  const mayPass = () => isOpen || (asking < maxAsking && !isFull())
  function admit() {
    while (mayPass()) {
      const pass = waiting.shift()
      if (!pass) return
      asking += 1
      pass(null)
    }
  }
  return {
    /** Returns null, which forbids no jobs, when the worker may ask for one. */
    pass(): null | Promise<null> {
      if (!mayPass()) return new Promise((resolve) => void waiting.push(resolve))
      asking += 1
      return null
    },
    /** A worker that passed has a job that is in progress now, or none. */
    onAsked() {
      asking -= 1
      admit()
    },
    admit,
    /** Lets all workers pass: the pool stops, and gives them no jobs. */
    open() {
      isOpen = true
      admit()
    },
  }
}
