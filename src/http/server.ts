import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AppOptions, createApp } from './app.ts'
import { hangUp } from './close-connection.ts'
import { boundConnections } from './connections.ts'
import { LATE_HEADERS, refuseMalformed } from './errors.ts'
import { HTTP_LIMITS, type HttpLimits } from './limits.ts'
import { listen } from './listen.ts'

export type ApiOptions = Omit<AppOptions, 'publicUrl' | 'limits'> & {
  /** Those that differ from HTTP_LIMITS. */
  limits?: Partial<HttpLimits>
  host: string
  /** 0: any that is free. */
  port: number
  /** null: made from host and the port that it got. */
  publicUrl: string | null
}

/** What a request under way gets to finish in before its connection is cut. */
const REQUESTS_FINISH_WITHIN_MS = 8000

/** Serves the API; `stop` finishes the requests under way. */
export async function startApi(
  options: ApiOptions,
): Promise<{ address: string; stop(): Promise<void> }> {
  const limits = { ...HTTP_LIMITS, ...options.limits }
  const server = createServer({
    // Node would refuse a request without a Host, or with an odd Expect, in words of its own; neither
    // means anything here.
    requireHostHeader: false,
    headersTimeout: limits.headersMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    // Bodies have a limit by progress (body.ts), which a large one on a slow line meets.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
  })
  server.timeout = limits.silenceMs
  // Who has closed their side after a request still gets the response. Node types this nowhere.
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections = boundConnections(server, limits.connections)
  const address = await listen(server, options.host, options.port)
  const publicUrl = options.publicUrl ?? address
  const { app, idle, close } = createApp({ ...options, publicUrl, limits })
  const respond = app.callback()
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    // Requests that arrived together with the one that closed their connection.
    if (!request.socket.destroyed) void respond(request, response)
  }
  server.on('request', handle)
  server.on('checkExpectation', handle)
  // Node would close the connection without a word. There is nothing at the host that it names.
  server.on('connect', (request, socket) => {
    const response = new ServerResponse(request)
    response.assignSocket(socket as Socket)
    response.on('finish', () => hangUp(socket as Socket))
    socket.on('error', () => socket.destroy())
    request.url = '/'
    handle(request, response)
  })
  const refuse = refuseMalformed(publicUrl, connections)
  server.on('clientError', refuse)
  // No byte has moved for a while: the client does not read, or has sent a part of another request.
  server.on('timeout', (socket) => {
    if (connections.responseOn(socket)) socket.destroy()
    else refuse(Object.assign(new Error(), { code: LATE_HEADERS }), socket)
  })
  return { address, stop: () => closeServer(server, idle).then(close) }
}

async function closeServer(server: Server, idle: () => Promise<unknown>) {
  // A connection that is kept alive is never idle with a busy caller: its next answer is its last.
  server.prependListener('request', (_request, response) => {
    response.setHeader('Connection', 'close')
  })
  const cut = setTimeout(() => server.closeAllConnections(), REQUESTS_FINISH_WITHIN_MS)
  await new Promise((resolve) => server.close(resolve))
  clearTimeout(cut)
  await idle()
}
