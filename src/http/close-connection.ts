import type { Socket } from 'node:net'

/** A client that is still sending may lose a response if its connection is destroyed at once. */
const DESTROY_AFTER_MS = 1000

/**
 * Writes `response` and closes our side of a connection, and destroys the connection if the client does not
 * close its side: no other limit applies to a half-closed connection, and it would keep the server from
 * stopping.
 */
export function closeConnection(socket: Socket, response = ''): void {
  socket.end(response)
  const timer = setTimeout(() => socket.destroy(), DESTROY_AFTER_MS)
  socket.once('close', () => clearTimeout(timer))
}
