import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

export type Connections = ReturnType<typeof limitConnections>

type Connection = {
  /** The latest response until it is sent. */
  response?: ServerResponse | undefined
  /** Requests whose responses are not sent. */
  inProgress: number
  /** Bytes that the connection had received when its latest response was sent. */
  bytesAtResponse: number
}

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
  const connections = new Map<Socket, Connection>()

  const longestWaiting = () => {
    for (const [socket, { response }] of connections) if (!response?.req.complete) return socket
  }

  const onRequest = ({ socket }: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(socket)
    if (!connection || socket.destroyed) return
    connections.delete(socket)
    connections.set(socket, connection)
    connection.response = response
    connection.inProgress += 1
    if (connection.inProgress > MAX_PIPELINED) socket.destroy()
    response.once('close', () => {
      connection.inProgress -= 1
      if (connection.response === response) connection.response = undefined
      connection.bytesAtResponse = socket.bytesRead
    })
  }

  server.on('connection', (socket: Socket) => {
    stopParsingWhenDestroyed(socket)
    if (connections.size >= max) {
      const closed = longestWaiting() ?? socket
      closed.destroy()
      if (closed === socket) return
      connections.delete(closed)
    }
    connections.set(socket, { inProgress: 0, bytesAtResponse: 0 })
    socket.once('close', () => connections.delete(socket))
  })
  server.on('request', onRequest)
  server.on('checkExpectation', onRequest)
  return {
    /** Returns the latest response on a connection until it is sent. */
    responseOn: (socket: Socket) => connections.get(socket)?.response,
    /** Whether no byte of another request has arrived since the latest response. */
    isIdle: (socket: Socket) =>
      socket.bytesRead === (connections.get(socket)?.bytesAtResponse ?? 0),
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
