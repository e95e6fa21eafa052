import { join } from 'node:path'
import type { Role, Service } from '../service/index.ts'
import { type Demo, firstSteps } from './demo.ts'

export type Announcement = {
  roles: readonly Role[]
  service: Pick<Service, 'address' | 'metricsAddress'>
  /** Where the service's data is. */
  database: string
  /** Of the embedded database: what there is to know of it. */
  embedded: { demo: Demo; psqlUrl: string; dataFolder: string } | null
  /** Whether keys and passwords may be shown: to a person, or once. */
  hasSecrets: boolean
}

/** What a start prints for people. Its output may be kept by a journal, so secrets are shown on request only. */
export function announcement({
  roles,
  service,
  database,
  embedded,
  hasSecrets,
}: Announcement): string {
  const { address, metricsAddress } = service
  const lines = [`Postgram runs (${roles.join(', ')}).`]
  if (address) lines.push(`  API       ${address}/v1`)
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
