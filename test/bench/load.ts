// The client of the benchmark, in a process of its own: as lean as can be, because it shares the
// machine with what it measures. Told what to do by one JSON argument, answers with one JSON line.
import { randomUUID } from 'node:crypto'
import { connect, type Socket } from 'node:net'

/** Who posts a body to the path, or gets what an id names below it. */
export type Sender = { key: string; body: string } | { key: string; id: string }

export type LoadPlan = {
  port: number
  path: string
  /** One request in turn for each of these. */
  senders: Sender[]
  connections: number
  seconds: number
  /** Requests per second over all connections; as many as it takes when absent. */
  rate?: number
}

export type LoadResult = {
  seconds: number
  answered: number
  /** Answers other than 200, by status. */
  refused: Record<string, number>
  /** Milliseconds. */
  p50: number
  p99: number
  slowest: number
}

const WARM_UP_SECONDS = 2

function requestFor(plan: LoadPlan, place: number): string {
  const sender = plan.senders[place % plan.senders.length] as Sender
  const who = `HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${sender.key}\r\n`
  if ('id' in sender) return `GET ${plan.path}/${sender.id} ${who}\r\n`
  return (
    `POST ${plan.path} ${who}` +
    `Content-Type: application/json\r\nIdempotency-Key: ${randomUUID()}\r\n` +
    `Content-Length: ${Buffer.byteLength(sender.body)}\r\n\r\n${sender.body}`
  )
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const latencies: number[] = []
  const refused: Record<string, number> = {}
  const started = performance.now()
  const counted = started + WARM_UP_SECONDS * 1000
  const end = counted + plan.seconds * 1000
  let place = 0

  async function converse(socket: Socket, lane: number) {
    const next = answers(socket)
    const everyMs = plan.rate ? (1000 * plan.connections) / plan.rate : 0
    let due = started + (everyMs * lane) / plan.connections
    for (;;) {
      const now = performance.now()
      if (now >= end) break
      if (everyMs > 0 && due > now) await new Promise((done) => setTimeout(done, due - now))
      // From when it was due: a server that stalls must not hide behind requests not made.
      const since = everyMs > 0 ? due : performance.now()
      due += everyMs
      socket.write(requestFor(plan, place++))
      const status = await next()
      const done = performance.now()
      if (done < counted || done > end) continue
      if (status === '200') latencies.push(done - since)
      else refused[status] = (refused[status] ?? 0) + 1
    }
    socket.destroy()
  }

  const sockets = await Promise.all(
    Array.from(
      { length: plan.connections },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(plan.port, '127.0.0.1', () => resolve(socket))
          socket.setNoDelay(true).once('error', reject)
        }),
    ),
  )
  await Promise.all(sockets.map(converse))
  latencies.sort((a, b) => a - b)
  const quantile = (share: number) => latencies[Math.floor(latencies.length * share)] ?? 0
  return {
    seconds: plan.seconds,
    answered: latencies.length,
    refused,
    p50: quantile(0.5),
    p99: quantile(0.99),
    slowest: latencies.at(-1) ?? 0,
  }
}

/** The status of each answer on a socket, one call for each request written. */
function answers(socket: Socket): () => Promise<string> {
  let buffer = Buffer.alloc(0)
  let waiting: ((status: string) => void) | undefined
  socket.on('data', (chunk) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk])
    const headEnd = buffer.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = buffer.toString('latin1', 0, headEnd)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    const total = headEnd + 4 + length
    if (buffer.length < total) return
    buffer = buffer.subarray(total)
    waiting?.(head.slice(9, 12))
  })
  return () =>
    new Promise((resolve) => {
      waiting = resolve
    })
}

// The plan is long (many senders), so it comes on standard input.
const chunks: Buffer[] = []
for await (const chunk of process.stdin) chunks.push(chunk)
console.log(JSON.stringify(await run(JSON.parse(Buffer.concat(chunks).toString()))))
