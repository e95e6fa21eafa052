import type { NodemailerError } from 'nodemailer'

/** Returns a hint for a relay that cannot be used: the problem and its fix. */
export function hintOf({ code, originalCode, response, message }: NodemailerError): string {
  const reason = originalCode ?? code ?? 'EUNKNOWN'
  if (/CERT|SIGNATURE|ALTNAME/.test(reason)) {
    return `the certificate of the relay is not trusted (${reason}): install a trusted one, or set ?tls.rejectUnauthorized=false in SMTP_URL`
  }
  if (/WRONG_VERSION|PACKET_LENGTH|EPROTO/.test(reason) || /wrong version number/.test(message)) {
    return `the port of SMTP_URL does not use implicit TLS (${reason}): use smtp://, or the port for implicit TLS`
  }
  if (code === 'ETLS') {
    return `the relay of SMTP_URL offers no TLS (${reason}): ask its operator for TLS, or set ?requireTLS=false`
  }
  if (code === 'EAUTH') {
    return `the relay of SMTP_URL refuses the login (${replyOr(reason, response)}): check user and password`
  }
  if (response) return `the relay of SMTP_URL refuses the connection: ${replyOr(reason, response)}`
  if (/Greeting/.test(message)) {
    return 'the relay of SMTP_URL sends no greeting: check the port, and use smtps:// if the port uses implicit TLS'
  }
  if (/ENOTFOUND|EAI_AGAIN|EDNS/.test(reason)) {
    return `the host of SMTP_URL has no address (${reason}): check the name and the resolver`
  }
  return `the relay of SMTP_URL cannot be reached (${reason}): check host and port, and that the relay accepts connections from this machine`
}

function replyOr(code: string, response: string | undefined): string {
  return response?.split('\n')[0]?.trim() || code
}
