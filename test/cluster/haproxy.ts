import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../fixtures/network.ts'
import { fileOfPage } from './pages.ts'
import type { Cluster } from './patroni.ts'
import { startProgram } from './program.ts'

/** Starts HAProxy in front of a cluster, as the page on failover sets it up; returns its port. */
export async function startHaproxy({ folder, members }: Cluster): Promise<number> {
  const port = await freePort()
  const file = join(folder, 'haproxy.cfg')
  const servers = members.map(({ name, port, restPort }) => [
    `${name}.example.net:5432`,
    `127.0.0.1:${port} port ${restPort}`,
  ])
  const text = fileOfPage('/etc/haproxy/haproxy.cfg', {
    // Only root can change its user.
    '    user haproxy\n    group haproxy\n': '',
    '127.0.0.1:5432': `127.0.0.1:${port}`,
    ...Object.fromEntries(servers),
  })
  await writeFile(file, `${text}\n`, { mode: 0o644 })
  await startProgram('haproxy', ['-db', '-f', file])
  return port
}
