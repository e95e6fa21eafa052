import { setImmediate as turn } from 'node:timers/promises'

/** A thousand addresses made to be hard take seconds; everyone else's requests go in between. */
const TURN_MS = 5

/** Like map, but lets other work in whenever it has run for some milliseconds. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  map: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  let since = performance.now()
  for (const item of items) {
    results.push(map(item))
    if (performance.now() - since > TURN_MS) {
      await turn()
      since = performance.now()
    }
  }
  return results
}
