import { Refusal } from '../errors.ts'
import { counted } from '../text/counted.ts'
import type { Api } from './api.gen.ts'
import type { Call } from './call.ts'

export type FairOptions = {
  /** How many calls of one line run at a time. */
  atOnce: number
  /** How many further calls of it may wait. */
  waiting: number
  /** Returns whose call it is, and so in which line it waits; undefined for calls that are not limited. */
  lineOf(name: keyof Api, args: object): string | undefined
  /** What a line is to its callers, as in "This organisation has 100 requests waiting". */
  subject: string
}

type Line = { running: number; waiting: (() => void)[] }

/**
 * Returns the same Call with a limit on the calls of one line that run at a time, so that nobody takes all
 * connections; further calls wait in order. Throws rate_limited if too many wait.
 */
export function fairCall(call: Call, { atOnce, waiting, lineOf, subject }: FairOptions): Call {
  const lines = new Map<string, Line>()

  async function inLine<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const line = lines.get(name) ?? { running: 0, waiting: [] }
    lines.set(name, line)
    if (line.running < atOnce) line.running += 1
    else {
      if (line.waiting.length >= waiting) {
        const message = `${subject} has ${counted(waiting, 'request')} waiting, which is the limit. Wait for their responses before sending more.`
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
        if (line.running === 0) lines.delete(name)
      }
    }
  }

  return (name, args, options) => {
    const line = lineOf(name, args)
    const work = () => call(name, args, options)
    return line === undefined ? work() : inLine(line, work)
  }
}
