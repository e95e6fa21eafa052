import { once } from 'node:events'
import { isIP, connect as overTcp, type Socket } from 'node:net'
import { connect as overTls } from 'node:tls'
import { LinkFailed, SILENT } from './failure.ts'
import type { Smsc } from './smsc.ts'

/** Connects to the SMSC, over TLS if its URL says so. Throws LinkFailed. */
export async function connect(smsc: Smsc, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  const { host, port, isSecure, isCertificateChecked } = smsc
  const socket = isSecure
    ? overTls({
        host,
        port,
        rejectUnauthorized: isCertificateChecked,
        ...(isIP(host) ? {} : { servername: host }),
      })
    : overTcp({ host, port, noDelay: true })
  // Stays after the socket is connected: `close` reports later errors as well.
  socket.on('error', () => undefined)
  const limit = AbortSignal.timeout(timeoutMs)
  try {
    await once(socket, isSecure ? 'secureConnect' : 'connect', {
      signal: AbortSignal.any([signal, limit]),
    })
    return socket
  } catch (error) {
    socket.destroy()
    const { code = 'ECONNECTION' } = error as NodeJS.ErrnoException
    throw LinkFailed.lost(signal.aborted ? 'ESTOPPED' : limit.aborted ? SILENT : code)
  }
}
