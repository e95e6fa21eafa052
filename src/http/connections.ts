import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = {
  /** The latest response on a connection, until it is sent. */
  responseOn(socket: Socket): ServerResponse | undefined
  /** Whether no byte of another request has arrived since the latest response. */
  isIdle(socket: Socket): boolean
}

/**
 * Bounds the connections of a server: one more than `max` closes the one that has waited longest for its
 * client, so that half-sent requests lock nobody out. Connections whose request is served stay open.
 */
export function boundConnections(server: Server, max: number): Connections {
  /** The connection of the latest request comes last. */
  const sockets = new Set<Socket>()
  const responses = new WeakMap<Socket, ServerResponse>()
  const answeredAt = new WeakMap<Socket, number>()

  const isServed = (socket: Socket) => responses.get(socket)?.req.complete ?? false

  const longestWaiting = () => {
    for (const socket of sockets) if (!isServed(socket)) return socket
  }

  const noteRequest = ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (sockets.delete(socket)) sockets.add(socket)
    responses.set(socket, response)
    response.once('close', () => {
      if (responses.get(socket) === response) responses.delete(socket)
      answeredAt.set(socket, socket.bytesRead)
    })
  }

  server.on('connection', (socket: Socket) => {
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
