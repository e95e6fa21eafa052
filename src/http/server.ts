import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AppOptions, createApp } from './app.ts'
import { closeConnection } from './close-connection.ts'
import { limitConnections } from './connections.ts'
import { LATE_HEADERS, refuseMalformed } from './errors.ts'
import { HTTP_LIMITS, type HttpLimits } from './limits.ts'
import { type Listening, listenOnSeveral } from './listen.ts'

type ApiOptions = Omit<AppOptions, 'publicUrl' | 'limits' | 'stopping'> & {
  /** Limits that differ from HTTP_LIMITS. */
  httpLimits?: Partial<HttpLimits>
  host: string
  /** 0 selects a free port. */
  port: number
  /** null: `http://` with the host and the port that the server listens on. */
  publicUrl: string | null
}

/** After this time a stop closes the connections of requests that are still in progress. */
const REQUESTS_FINISH_WITHIN_MS = 8000

/** Serves the API; `stop` finishes the requests in progress. */
export async function startApi(options: ApiOptions) {
  const limits = { ...HTTP_LIMITS, ...options.httpLimits }
  const server = createServer({
    // Node would refuse a request without a Host header with a response outside the error envelope. No
    // endpoint needs the header.
    requireHostHeader: false,
    headersTimeout: limits.headersMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    // body/receive.ts limits bodies by their progress instead, so that a slow client can send a large one.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
  })
  server.timeout = limits.silenceMs
  // A client that half-closes the connection after its request still gets the response. Missing in the types.
  Object.assign(server, { httpAllowHalfOpen: true })
  const connections = limitConnections(server, limits.connections)
  const listening = await listenOnSeveral(server, options.host, options.port)
  const publicUrl = options.publicUrl ?? listening.address
  const stopping = new AbortController()
  const { app, idle, close } = createApp({
    ...options,
    publicUrl,
    limits,
    stopping: stopping.signal,
  })
  server.on('connection', (socket: Socket) => {
    socket.on('error', (error) => {
      if (connections.responseOn(socket)) app.emit('error', error)
    })
  })
  const respond = app.callback()
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    // A request may have arrived together with one that closed the connection.
    if (!request.socket.destroyed) void respond(request, response)
  }
  server.on('request', handle)
  // An unknown Expect header is ignored; by default Node responds 417 without a body.
  server.on('checkExpectation', handle)
  // Without a listener Node closes the connection of a CONNECT request; here it gets a not_found response.
  server.on('connect', (request, socket) => {
    const response = new ServerResponse(request)
    response.assignSocket(socket as Socket)
    response.on('finish', () => closeConnection(socket as Socket))
    socket.on('error', () => socket.destroy())
    request.url = '/'
    handle(request, response)
  })
  const refuse = refuseMalformed(publicUrl, connections)
  server.on('clientError', refuse)
  // No byte was sent or received for `silenceMs`: the client does not read, or it stopped within a request.
  server.on('timeout', (socket) => {
    if (connections.responseOn(socket)) socket.destroy()
    else refuse(Object.assign(new Error(), { code: LATE_HEADERS }), socket)
  })
  return {
    address: listening.address,
    async stop() {
      stopping.abort()
      await closeServer(server, listening, idle)
      await close()
    },
  }
}

async function closeServer(server: Server, listening: Listening, idle: () => Promise<unknown>) {
  // A busy caller never leaves its kept-alive connection idle, so the next response closes the connection.
  server.prependListener('request', (_request, response) => {
    response.setHeader('Connection', 'close')
  })
  const timer = setTimeout(() => server.closeAllConnections(), REQUESTS_FINISH_WITHIN_MS)
  await listening.close()
  clearTimeout(timer)
  await idle()
}
