import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Connections that wait to be accepted. A client of one beyond these tries again after a second. */
const BACKLOG = 4096

/** Makes a server listen, on a free port for port 0; answers where it is found. Rejects when the port is taken. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port: actual } = server.address() as AddressInfo
  return addressOf(host, actual)
}

/** Where a server is found on this host and port. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
