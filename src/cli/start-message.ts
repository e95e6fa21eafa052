import { join } from 'node:path'
import type { Role, Service } from '../service/index.ts'
import { type Demo, firstSteps } from './demo.ts'

type Started = {
  roles: readonly Role[]
  service: Pick<Service, 'address' | 'metricsAddress'>
  /** Which database the service uses, without a password. */
  database: string
  /** The embedded database; null when another one is used. */
  embedded: { demo: Demo; psqlUrl: string; dataFolder: string } | null
  /** Whether keys and passwords are shown. */
  hasSecrets: boolean
  /** The link that signs in to the dashboard; null if none is shown. */
  dashboardLink: string | null
}

/** Returns what a start prints for people. A journal may keep it, so secrets are shown to a terminal, or once. */
export function startMessage(started: Started): string {
  const { roles, service, database, embedded, hasSecrets, dashboardLink } = started
  const { address, metricsAddress } = service
  const lines = [`Postgram runs (${roles.join(', ')}).`]
  if (address) lines.push(`  API       ${address}/v1`)
  if (dashboardLink) lines.push(`  dashboard ${dashboardLink}`)
  if (metricsAddress) lines.push(`  metrics   ${metricsAddress}/metrics`)
  lines.push(`  database  ${database}`)
  if (embedded) {
    const { demo, psqlUrl, dataFolder } = embedded
    if (hasSecrets) {
      lines.push(`  live key  ${demo.liveKey}`, `  test key  ${demo.testKey}`)
      lines.push(`  psql      ${psqlUrl}`)
      if (address) lines.push('', firstSteps(address, demo))
    } else {
      const open = Object.assign(new URL(psqlUrl), { password: '' }).href
      lines.push(`  keys      in ${join(dataFolder, 'demo.json')}, or by: npm run seed`)
      lines.push(`  psql      ${open}, password in ${join(dataFolder, 'postgres-password')}`)
    }
  }
  return lines.join('\n')
}
