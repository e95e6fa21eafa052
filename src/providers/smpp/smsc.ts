import * as v from 'valibot'
import { flag, readServerUrl } from '../server-url.ts'

/** The content of SMPP_URL. */
export type Smsc = {
  host: string
  port: number
  isSecure: boolean
  systemId: string
  password: string
  systemType: string
  /** Whether an untrusted certificate is refused. */
  isCertificateChecked: boolean
}

// SMPP 3.4, 4.1.5, without the terminating NUL.
const MAX_SYSTEM_ID_LENGTH = 15
const MAX_PASSWORD_LENGTH = 8
const MAX_SYSTEM_TYPE_LENGTH = 12

const PRINTABLE = /^[\x20-\x7e]*$/

const parameters = v.strictObject({
  systemType: v.optional(
    v.pipe(v.string(), v.maxLength(MAX_SYSTEM_TYPE_LENGTH), v.regex(PRINTABLE)),
    '',
  ),
  /** false accepts a self-signed certificate. */
  'tls.rejectUnauthorized': v.optional(flag, 'true'),
})

/**
 * Reads `smpp[s]://system_id:password@host[:port][?parameters]`. The port defaults to 2775, over TLS to 3550.
 * Problems do not quote the URL, because it contains a password.
 */
export function readSmsc(text: string): Smsc | { problem: string } {
  const url = readServerUrl(text)
  if (!url?.user || !/^smpps?:$/.test(url.protocol) || url.host === '') {
    return {
      problem:
        'must be smpp:// or smpps:// with user:password@host; write special characters as %XX',
    }
  }
  const { host, user: systemId, password } = url
  if (!PRINTABLE.test(systemId + password) || systemId.length > MAX_SYSTEM_ID_LENGTH) {
    return { problem: `must have a user of at most ${MAX_SYSTEM_ID_LENGTH} ASCII characters` }
  }
  if (password.length > MAX_PASSWORD_LENGTH) {
    return {
      problem: `must have a password of at most ${MAX_PASSWORD_LENGTH} characters, the limit of SMPP`,
    }
  }
  const given = v.safeParse(parameters, url.parameters)
  if (!given.success) {
    return { problem: `accepts only the parameters ${Object.keys(parameters.entries).join(', ')}` }
  }
  const isSecure = url.protocol === 'smpps:'
  return {
    host,
    port: Number(url.port) || (isSecure ? 3550 : 2775),
    isSecure,
    systemId,
    password,
    systemType: given.output.systemType,
    isCertificateChecked: given.output['tls.rejectUnauthorized'],
  }
}
