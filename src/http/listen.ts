import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Connections that wait to be accepted. The client of a further one retries after a second. */
const BACKLOG = 4096

/** Makes a server listen, on a free port for port 0; returns its URL. Rejects when the port is taken. */
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

/** Returns the URL of a server on this host and port. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
