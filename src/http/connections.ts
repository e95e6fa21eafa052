import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = {
  /** The latest response on a connection, until it is sent. */
  responseOn(socket: Socket): ServerResponse | undefined
  /** Whether no byte of another request has arrived since the latest response. */
  isIdle(socket: Socket): boolean
}

/** A connection may have so many requests whose responses are not sent; one more closes it. */
const MAX_PIPELINED = 16

/** llhttp ends parsing when a callback returns it. */
const PARSE_ERROR = -1

/**
 * Bounds the connections of a server: one more than `max` closes the one that has waited longest for its
 * client, so that half-sent requests lock nobody out. Connections whose request is served stay open.
 * Bounds the requests in progress of a connection as well: Node stops reading one with many only when
 * responses wait to be sent.
 */
export function boundConnections(server: Server, max: number): Connections {
  /** The connection of the latest request comes last. */
  const sockets = new Set<Socket>()
  const responses = new WeakMap<Socket, ServerResponse>()
  const answeredAt = new WeakMap<Socket, number>()
  const inProgress = new WeakMap<Socket, number>()

  const isServed = (socket: Socket) => responses.get(socket)?.req.complete ?? false

  const longestWaiting = () => {
    for (const socket of sockets) if (!isServed(socket)) return socket
  }

  const noteRequest = ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (socket.destroyed) return
    if (sockets.delete(socket)) sockets.add(socket)
    responses.set(socket, response)
    const requests = (inProgress.get(socket) ?? 0) + 1
    inProgress.set(socket, requests)
    if (requests > MAX_PIPELINED) socket.destroy()
    response.once('close', () => {
      inProgress.set(socket, (inProgress.get(socket) ?? 0) - 1)
      if (responses.get(socket) === response) responses.delete(socket)
      answeredAt.set(socket, socket.bytesRead)
    })
  }

  server.on('connection', (socket: Socket) => {
    dropWhenDestroyed(socket)
    if (sockets.size >= max) {
      const closed = longestWaiting() ?? socket
      closed.destroy()
      if (closed === socket) return
      sockets.delete(closed)
    }
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', noteRequest)
  server.on('checkExpectation', noteRequest)
  return {
    responseOn: (socket) => responses.get(socket),
    isIdle: (socket) => socket.bytesRead === (answeredAt.get(socket) ?? 0),
  }
}

/**
 * Has the parser of a connection stop once it is destroyed. Otherwise Node goes on to make a request of all
 * that has been received, up to 4 000 in 60 ms. Node has no public way to stop it; without this one such
 * requests are dropped one by one.
 */
function dropWhenDestroyed(socket: Socket): void {
  const { parser } = socket as { parser?: { onIncoming?: (...args: unknown[]) => number } }
  const onIncoming = parser?.onIncoming
  if (!parser || !onIncoming) return
  parser.onIncoming = (...args) => (socket.destroyed ? PARSE_ERROR : onIncoming(...args))
}
