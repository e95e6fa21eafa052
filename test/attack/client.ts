import { Agent, request } from 'node:http'
import type { AttackClient, Attacker, AttackRequest } from './attack.ts'

/** The most requests of one attack in progress. */
const MAX_SOCKETS = 5000

/** Creates the HTTP client of an attack: counts responses, and stops after `seconds`. */
export function createAttackClient(options: {
  base: string
  attackers: Attacker[]
  seconds: number
}): {
  client: AttackClient
  start(): void
  responses: Record<string, number>
} {
  const { base, attackers, seconds } = options
  const { hostname: host, port: portText } = new URL(base)
  const port = Number(portText || 80)
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS })
  const responses: Record<string, number> = {}
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  let isOver = false

  const note = (what: string) => {
    responses[what] = (responses[what] ?? 0) + 1
  }

  function send({ method, path, key, body, headers }: AttackRequest): Promise<void> {
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
      // Requests without a response at the end are part of the result. By the clock: a service that is blocked
      // gives no sign, and within these 2 s late responses still count.
      const cut = () => call.destroy(Object.assign(new Error('cut off'), { code: 'no response' }))
      over.then(() => setTimeout(cut, 2000).unref())
      call.end(body)
    })
  }

  async function repeat(
    lanes: number,
    next: (attacker: Attacker, n: number) => AttackRequest,
    { count = Number.POSITIVE_INFINITY } = {},
  ) {
    await Promise.all(
      attackers.map(async (attacker) => {
        let n = 0
        const lane = async () => {
          while (!isOver && n < count) await send(next(attacker, n++))
        }
        await Promise.all(Array.from({ length: lanes }, lane))
      }),
    )
  }

  return {
    client: { attackers, host, port, isOver: () => isOver, over, send, repeat, note },
    start() {
      // The time of the attack, which `--seconds` sets.
      setTimeout(() => {
        isOver = true
        end()
      }, seconds * 1000)
    },
    responses,
  }
}
