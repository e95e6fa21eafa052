/**
 * The workers of a pool pass it before each job. Each job that arrives may have several messages, and those without
 * a place would be lost to other processes meanwhile. `hasRoom(asking)` returns whether one more worker may ask
 * while so many have passed and have no job yet.
 */
export function createGate(hasRoom: (asking: number) => boolean) {
  let asking = 0
  let isOpen = false
  const waiting: ((flags: null) => void)[] = []
  const mayPass = () => isOpen || hasRoom(asking)
  function admit() {
    while (waiting.length > 0 && mayPass()) {
      asking += 1
      waiting.shift()?.(null)
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
