import { createHmac } from 'node:crypto'

/**
 * The value of Service-Signature (interface 6.3) over a body sent at this time: one v1 for each secret,
 * of which there are two for a day after a rotation.
 */
export function sign(body: string, secrets: readonly string[], atSeconds: number): string {
  const signatures = secrets.map((secret) => {
    const hmac = createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex')
    return `v1=${hmac}`
  })
  return [`t=${atSeconds}`, ...signatures].join(',')
}
