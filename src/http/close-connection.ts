import type { Socket } from 'node:net'

/** Who is destroyed with something of theirs unread may lose the last words that are on their way. */
const HEARS_WITHIN_MS = 1000

/**
 * Says the last words on a connection and closes it, also when the other side does not: nothing else limits
 * one that is half closed, and the server could not stop for as long as it is there.
 */
export function hangUp(socket: Socket, lastWords = ''): void {
  socket.end(lastWords)
  const timer = setTimeout(() => socket.destroy(), HEARS_WITHIN_MS)
  socket.once('close', () => clearTimeout(timer))
}
