import { createServer, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AppOptions, createApp } from './app.ts'
import { refuseMalformed } from './errors.ts'
import { hangUp } from './hang-up.ts'
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
  // Node would refuse a request without a Host, or with an odd Expect, in words of its own; neither
  // means anything here.
  const server = createServer({ requireHostHeader: false })
  const address = await listen(server, options.host, options.port)
  const publicUrl = options.publicUrl ?? address
  const limits = { ...HTTP_LIMITS, ...options.limits }
  const { app, idle } = createApp({ ...options, publicUrl, limits })
  const handle = app.callback()
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
  server.on('clientError', refuseMalformed(publicUrl))
  return { address, stop: () => closeServer(server, idle) }
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
