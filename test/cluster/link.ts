import { connect, type Socket } from 'node:net'
import t from 'tap'
import { startTcpServer } from '../fixtures/network.ts'

/** The network in front of a port: connections through it are silent while it is cut. */
export type Link = {
  port: number
  cut(): void
  /** Resets the connections that were cut. */
  mend(): void
}

export async function startLink(to: number): Promise<Link> {
  const pairs = new Set<[near: Socket, far: Socket]>()
  let isCut = false
  const server = await startTcpServer((near) => {
    const far = isCut ? near : connect(to, '127.0.0.1')
    pairs.add([near, far])
    // Neither end gets to know of a close while the link is cut.
    const close = () => {
      if (isCut) return
      near.destroy()
      far.destroy()
    }
    far.on('error', () => undefined).on('close', close)
    near.on('close', close)
    if (far !== near) near.pipe(far).pipe(near)
  })
  const mend = () => {
    isCut = false
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy()
    pairs.clear()
  }
  t.teardown(mend)
  return {
    port: server.port,
    cut() {
      isCut = true
      for (const pair of pairs) for (const socket of pair) socket.unpipe().pause()
    },
    mend,
  }
}
