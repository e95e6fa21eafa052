import { Refusal } from '../errors.ts'
import { counted } from '../text/counted.ts'
import type { Call } from './call.ts'

export type FairOptions = {
  /** How many calls of one organisation run at a time. */
  atOnce: number
  /** How many further calls of it may wait. */
  waiting: number
}

type Line = { running: number; waiting: (() => void)[] }

/**
 * Returns the same Call with a limit on the calls of one organisation that run at a time, so that no organisation
 * takes all connections; further calls wait in order. Throws rate_limited if too many wait. Calls without an
 * organisation_id are not limited.
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
        const message = `This organisation has ${counted(waiting, 'request')} waiting, which is the limit. Wait for their responses before sending more.`
        throw new Refusal('rate_limited', null, { message, retryAfter: 1 })
      }
      // The call that ends passes its place on.
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
