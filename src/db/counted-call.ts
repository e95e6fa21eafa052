import type { Call } from './call.ts'

/** The same Call, and how many of its calls are under way. */
export function countedCall(call: Call): { call: Call; underWay(): number } {
  let underWay = 0
  return {
    call: (async (name, args) => {
      underWay += 1
      try {
        return await call(name, args)
      } finally {
        underWay -= 1
      }
    }) as Call,
    underWay: () => underWay,
  }
}
