import { isIP, connect as overTcp, type Socket } from 'node:net'
import { connect as overTls } from 'node:tls'
import { LinkFailed, SILENT } from './failure.ts'
import type { Smsc } from './smsc.ts'

/** A connection to the SMSC, over TLS where it is to be. Throws LinkFailed. */
export function connect(smsc: Smsc, withinMs: number, signal: AbortSignal): Promise<Socket> {
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
      end()
      socket.destroy()
      reject(LinkFailed.lost(code))
    }
    const stop = () => fail('ESTOPPED')
    const timer = setTimeout(fail, withinMs, SILENT)
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
    signal.addEventListener('abort', stop)
    // For good: what comes after the promise is settled is told by `close` too.
    socket.on('error', ({ code }: NodeJS.ErrnoException) => fail(code ?? 'ECONNECTION'))
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      end()
      resolve(socket)
    })
    if (signal.aborted) stop()
  })
}
