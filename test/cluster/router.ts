import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { get } from '../fixtures/http.ts'
import { freePort, newFolder } from '../fixtures/network.ts'
import { programsOf } from '../fixtures/pages.ts'
import { until } from '../fixtures/time.ts'

const PROGRAM = '/usr/sbin/haproxy'

/** Why tests that need it are skipped, or false. */
export const noHaproxy =
  !existsSync(PROGRAM) && 'there is no HAProxy on this machine (Debian package haproxy)'

/** Starts HAProxy in front of two cells, as openRouter() does. Returns the address. */
export async function startRouter(ports: Ports): Promise<string> {
  return (await openRouter(ports)).base
}

type Ports = [first: number, second: number]

/**
 * Starts HAProxy in front of two cells, with the files of the page on cells. `ports` are those of the cells' APIs, of
 * which the first is running.
 */
export async function openRouter(ports: Ports) {
  const files = await programsOf('cells')
  const folder = await newFolder()
  const port = await freePort()
  const map = join(folder, 'cells.map')
  const file = join(folder, 'haproxy.cfg')
  const replacements = {
    // Only root can change its user.
    '    user haproxy\n    group haproxy\n': '',
    ':443 ssl crt /etc/haproxy/api.example.net.pem': `127.0.0.1:${port}`,
    '/etc/haproxy/cells.map': map,
    'cell1.example.net:3000': `127.0.0.1:${ports[0]}`,
    'cell2.example.net:3000': `127.0.0.1:${ports[1]}`,
  }
  let text = files['/etc/haproxy/haproxy.cfg'] ?? ''
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`haproxy.cfg of the page has no ${from}`)
    text = text.replace(from, to)
  }
  await writeFile(map, `${files['/etc/haproxy/cells.map']}\n`)
  await writeFile(file, `${text}\n`)
  const output: string[] = []
  const run = () => {
    const child = spawn(PROGRAM, ['-db', '-f', file], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => output.push(String(chunk)))
    }
    const exit = once(child, 'exit')
    return async () => {
      child.kill('SIGKILL')
      await exit
    }
  }
  let stop = run()
  t.teardown(async () => {
    await stop()
    if (!t.passing()) console.error(output.join(''))
  })
  const base = `http://127.0.0.1:${port}`
  await until('HAProxy', async () => {
    const answer = await get(`${base}/readyz`, null).catch(() => undefined)
    return answer?.status === 200
  })
  return {
    base,
    /** Adds lines to the map of the keys. */
    async addToMap(lines: string[]) {
      await appendFile(map, lines.map((line) => `${line}\n`).join(''))
      await stop()
      stop = run()
    },
  }
}
