import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = ReturnType<typeof limitConnections>

/** The number of requests of a connection whose responses are not sent; a further one closes it. */
const MAX_PIPELINED = 16

/** A callback that returns this makes llhttp stop parsing. */
const PARSE_ERROR = -1

/**
 * Limits the connections of a server. One more than `max` closes the connection that has waited longest for
 * its client, so that half-sent requests lock nobody out; connections with a received request stay open. Also
 * limits the requests in progress on one connection, because Node itself stops reading only once responses
 * wait to be sent.
 */
export function limitConnections(server: Server, max: number) {
  /** Open connections; the one with the latest request comes last. */
  const sockets = new Set<Socket>()
  const responses = new WeakMap<Socket, ServerResponse>()
  /** Bytes that a connection had received when its latest response was sent. */
  const bytesAtResponse = new WeakMap<Socket, number>()
  const inProgress = new WeakMap<Socket, number>()

  const isServed = (socket: Socket) => responses.get(socket)?.req.complete ?? false

  const longestWaiting = () => {
    for (const socket of sockets) if (!isServed(socket)) return socket
  }

  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (socket.destroyed) return
    if (sockets.delete(socket)) sockets.add(socket)
    responses.set(socket, response)
    const requests = (inProgress.get(socket) ?? 0) + 1
    inProgress.set(socket, requests)
    if (requests > MAX_PIPELINED) socket.destroy()
    response.once('close', () => {
      inProgress.set(socket, (inProgress.get(socket) ?? 0) - 1)
      if (responses.get(socket) === response) responses.delete(socket)
      bytesAtResponse.set(socket, socket.bytesRead)
    })
  }

  server.on('connection', (socket: Socket) => {
    stopParsingWhenDestroyed(socket)
    if (sockets.size >= max) {
      const closed = longestWaiting() ?? socket
      closed.destroy()
      if (closed === socket) return
      sockets.delete(closed)
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', onRequest)
  server.on('checkExpectation', onRequest)
  return {
    /** Returns the latest response on a connection until it is sent. */
    responseOn: (socket: Socket) => responses.get(socket),
    /** Whether no byte of another request has arrived since the latest response. */
    isIdle: (socket: Socket) => socket.bytesRead === (bytesAtResponse.get(socket) ?? 0),
  }
}

/**
 * Stops the parser of a connection once the connection is destroyed. Otherwise Node emits all requests that it
 * has received, up to 4 000 in 60 ms, which server.ts then drops one by one. Node has no public method for it.
 */
function stopParsingWhenDestroyed(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: (...args: unknown[]) => number } }
  const onIncoming = parser?.onIncoming
  if (!parser || !onIncoming) return
  parser.onIncoming = (...args) => (socket.destroyed ? PARSE_ERROR : onIncoming(...args))
}
