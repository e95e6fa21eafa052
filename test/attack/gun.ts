import { Agent, request } from 'node:http'
import type { Attacker, Gun, Shot } from './attack.ts'

/** What one attack may have on its way at a time. */
const MAX_SOCKETS = 5000

/** The client of the attacks: counts what comes back, ends by itself. */
export function createGun(options: { base: string; attackers: Attacker[]; seconds: number }): {
  gun: Gun
  start(): void
  answers: Record<string, number>
} {
  const { base, attackers, seconds } = options
  const { hostname: host, port: portText } = new URL(base)
  const port = Number(portText || 80)
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS })
  const answers: Record<string, number> = {}
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let isOver = false

  const note = (what: string) => {
    answers[what] = (answers[what] ?? 0) + 1
  }

  function fire({ method, path, key, body, headers }: Shot): Promise<void> {
    return new Promise((resolve) => {
      const done = (what: string) => {
        note(what)
        resolve()
      }
      const call = request(
        {
          host,
          port,
          path,
          method: method ?? 'POST',
          agent,
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
            ...headers,
          },
        },
        (response) => {
          response.resume()
          response.once('close', () => done(String(response.statusCode)))
        },
      )
      call.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
      // Requests that are not finished when the time is up are part of the result.
      const cut = () => call.destroy(Object.assign(new Error('cut off'), { code: 'unanswered' }))
      over.then(() => setTimeout(cut, 2000).unref())
      call.end(body)
    })
  }

  async function flood(
    lanes: number,
    next: (attacker: Attacker, n: number) => Shot,
    { count = Number.POSITIVE_INFINITY } = {},
  ) {
    await Promise.all(
      attackers.map(async (attacker) => {
        let n = 0
        const lane = async () => {
          while (!isOver && n < count) await fire(next(attacker, n++))
        }
        await Promise.all(Array.from({ length: lanes }, lane))
      }),
    )
  }

  return {
    gun: { attackers, host, port, isOver: () => isOver, over, fire, flood, note },
    start() {
      setTimeout(() => {
        isOver = true
        end()
      }, seconds * 1000)
    },
    answers,
  }
}
