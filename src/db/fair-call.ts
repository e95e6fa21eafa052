import { Refusal } from '../errors.ts'
import type { Call } from './call.ts'

export type FairOptions = {
  /** Calls of one organisation that run at a time. */
  atOnce: number
  /** Calls of one organisation that may wait behind them. */
  waiting: number
}

type Line = { running: number; waiting: (() => void)[] }

/**
 * The same Call, which runs few calls of one organisation at a time, the others in order behind them, so
 * that no organisation takes all connections. Throws rate_limited when too many wait. Calls without an
 * organisation_id pass.
 */
export function fairCall(call: Call, { atOnce, waiting }: FairOptions): Call {
  const lines = new Map<string, Line>()

  async function inLine<Result>(
    organisation: string,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const line = lines.get(organisation) ?? { running: 0, waiting: [] }
    lines.set(organisation, line)
    if (line.running < atOnce) line.running += 1
    else {
      if (line.waiting.length >= waiting) {
        const message = `This organisation has ${waiting} requests waiting, which is the limit. Wait for their responses before sending more.`
        throw new Refusal('rate_limited', null, { message, retryAfter: 1 })
      }
      // Whoever ends leaves the place to us.
      await new Promise<void>((resolve) => line.waiting.push(resolve))
    }
    try {
      return await work()
    } finally {
      const next = line.waiting.shift()
      if (next) next()
      else {
        line.running -= 1
        if (line.running === 0) lines.delete(organisation)
      }
    }
  }

  return (name, args, options) => {
    const { organisation_id: organisation } = args as { organisation_id?: string }
    const work = () => call(name, args, options)
    return organisation === undefined ? work() : inLine(organisation, work)
  }
}
