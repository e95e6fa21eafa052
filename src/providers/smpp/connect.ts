import { isIP, connect as overTcp, type Socket } from 'node:net'
import { connect as overTls } from 'node:tls'
import { LinkFailed, SILENT } from './failure.ts'
import type { Smsc } from './smsc.ts'

/** Connects to the SMSC, over TLS if its URL says so. Throws LinkFailed. */
export function connect(smsc: Smsc, timeoutMs: number, signal: AbortSignal): Promise<Socket> {
  const { host, port, isSecure, isCertificateChecked } = smsc
  const socket = isSecure
    ? overTls({
        host,
        port,
        rejectUnauthorized: isCertificateChecked,
        ...(isIP(host) ? {} : { servername: host }),
      })
    : overTcp({ host, port, noDelay: true })
  return new Promise((resolve, reject) => {
    const fail = (code: string) => {
      cleanUp()
      socket.destroy()
      reject(LinkFailed.lost(code))
    }
    const stop = () => fail('ESTOPPED')
    const timer = setTimeout(fail, timeoutMs, SILENT)
    const cleanUp = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
    signal.addEventListener('abort', stop)
    // Stays after the promise is settled; `close` reports later errors as well.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => fail(code ?? 'ECONNECTION'))
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      cleanUp()
      resolve(socket)
    })
    if (signal.aborted) stop()
  })
}
