import type { NodemailerError } from 'nodemailer'

/** What to do about a relay that cannot be used. Node's own messages are advice for programmers. */
export function hintOf({ code, originalCode, response, message }: NodemailerError): string {
  const reason = originalCode ?? code ?? 'EUNKNOWN'
  if (/CERT|SIGNATURE|ALTNAME/.test(reason)) {
    return `the certificate of the relay is not trusted (${reason}): have it replaced, or set ?tls.rejectUnauthorized=false in SMTP_URL`
  }
  if (/WRONG_VERSION|PACKET_LENGTH|EPROTO/.test(reason) || /wrong version number/.test(message)) {
    return `the port of SMTP_URL does not speak TLS from the start (${reason}): write smtp://, or the port that does`
  }
  if (code === 'ETLS') {
    return `the relay of SMTP_URL offers no TLS (${reason}): ask who runs it, or set ?requireTLS=false`
  }
  if (code === 'EAUTH') {
    return `the relay of SMTP_URL refuses our login (${replyOr(reason, response)}): check user and password`
  }
  if (response) return `the relay of SMTP_URL does not let us in: ${replyOr(reason, response)}`
  if (/Greeting/.test(message)) {
    return 'the relay of SMTP_URL does not greet: check the port, and write smtps:// if it speaks TLS from the start'
  }
  if (/ENOTFOUND|EAI_AGAIN|EDNS/.test(reason)) {
    return `the host of SMTP_URL has no address (${reason}): check its name and the resolver`
  }
  return `the relay of SMTP_URL cannot be reached (${reason}): check host and port, and that it lets this machine in`
}

function replyOr(code: string, response: string | undefined): string {
  return response?.split('\n')[0]?.trim() || code
}
