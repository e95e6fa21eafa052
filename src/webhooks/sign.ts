import { createHmac } from 'node:crypto'

/**
 * Returns the value of Service-Signature for a body sent at this time. It has one v1 for each secret;
 * there are two secrets for a day after a rotation.
 */
export function sign(body: string, secrets: readonly string[], atSeconds: number): string {
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex')
    return `v1=${hmac}`
  })
  return [`t=${atSeconds}`, ...signatures].join(',')
}
