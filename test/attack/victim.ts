import { Agent, request } from 'node:http'

const EVERY_MS = 100
const TIMEOUT_MS = 20_000

export type Figures = { p50: number; p99: number; max: number }

export type VictimFigures = {
  sends: Figures
  health: Figures
  /** Responses other than 200, and errors, by status or code. */
  errors: Record<string, number>
}

/** The time of a request, also of a failed one, and its status or error code. */
type Measured = { ms: number; status: string }

/**
 * Sends an email and requests /healthz every 100 ms. The requests do not wait for earlier responses, so that a
 * stall delays all requests in its time and shows in the figures.
 */
export async function measureVictim(options: {
  base: string
  key: string
  domain: string
  seconds: number
}): Promise<VictimFigures> {
  const { base, key, domain, seconds } = options
  const agent = new Agent({ keepAlive: true })
  const body = JSON.stringify({
    from: `Victim <hello@${domain}>`,
    to: 'delivered@sandbox.postgram.test',
    subject: 'Your code',
    text: 'Your code is 493817.',
  })
  const sends: Promise<Measured>[] = []
  const health: Promise<Measured>[] = []
  const started = performance.now()
  for (let n = 0; n * EVERY_MS < seconds * 1000; n++) {
    const wait = started + n * EVERY_MS - performance.now()
    if (wait > 0) await new Promise((done) => setTimeout(done, wait))
    const due = started + n * EVERY_MS
    sends.push(measure(due, `${base}/v1/emails`, { agent, key, body }))
    // On a new connection, like a load balancer.
    health.push(measure(due, `${base}/healthz`, { agent: false }))
  }
  const [sent, checked] = [await Promise.all(sends), await Promise.all(health)]
  agent.destroy()
  const errors: Record<string, number> = {}
  for (const { status } of [...sent, ...checked]) {
    if (status !== '200') errors[status] = (errors[status] ?? 0) + 1
  }
  return { sends: figures(sent), health: figures(checked), errors }
}

function measure(
  due: number,
  url: string,
  { agent, key, body }: { agent: Agent | false; key?: string; body?: string },
): Promise<Measured> {
  return new Promise((resolve) => {
    const done = (status: string) => resolve({ ms: performance.now() - due, status })
    const call = request(
      url,
      {
        method: body === undefined ? 'GET' : 'POST',
        agent,
        headers: key ? { authorization: `Bearer ${key}` } : {},
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      (response) => {
        response.resume()
        response.once('close', () => done(String(response.statusCode)))
      },
    )
    call.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
    call.end(body)
  })
}

function figures(measured: Measured[]): Figures {
  const times = measured.map(({ ms }) => ms).sort((a, b) => a - b)
  const quantile = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
  return { p50: quantile(0.5), p99: quantile(0.99), max: times.at(-1) ?? 0 }
}
