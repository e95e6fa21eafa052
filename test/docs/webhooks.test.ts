import { spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sign } from '../../src/webhooks/attempt.ts'
import { isAbsent, makeProject, programsOf, type Runner, startProgram } from '../fixtures/pages.ts'
import { until } from '../fixtures/time.ts'

const programs = await programsOf('webhooks')
const folder = await makeProject(programs)
const goFolder = await mkdtemp(join(tmpdir(), 'postgram-go-'))
t.teardown(() => rm(goFolder, { recursive: true }))

const node = (file: string): Runner => ({
  file,
  command: () => [process.execPath, file],
  asks: [process.execPath, '--version'],
})

const runners: Record<string, Runner> = {
  'our helper': node('receiver.mjs'),
  JavaScript: node('by-hand.mjs'),
  Python: {
    file: 'receiver.py',
    command: () => ['python3', 'receiver.py'],
    asks: ['python3', '--version'],
  },
  PHP: {
    file: 'receiver.php',
    command: (port) => ['php', '-S', `127.0.0.1:${port}`, 'receiver.php'],
    asks: ['php', '--version'],
  },
  Go: {
    file: 'receiver.go',
    // "go run" would leave it behind when it is ended itself.
    build: ['go', 'build', '-o', 'receiver', 'receiver.go'],
    command: () => ['./receiver'],
    asks: ['go', 'version'],
    // Offline, with nothing of the user's, and no need of a C compiler.
    env: { GOFLAGS: '-mod=mod', GOCACHE: goFolder, GOPATH: goFolder, CGO_ENABLED: '0' },
  },
}

const SECRET = `whsec_${'5'.repeat(64)}`
const OTHER = `whsec_${'6'.repeat(64)}`
const BODY =
  '{"id" : "evt_1", "type" : "email.bounced", "data" : {"to" : "möwe@example.com 💌", "error" : null}}'

const ago = (seconds: number) => Math.floor(Date.now() / 1000) - seconds
const header = (secrets: string[] = [SECRET], seconds = 0, body = BODY) =>
  sign(body, secrets, ago(seconds))

async function statusOf(url: string, signature: string | null, body = BODY): Promise<number> {
  const headers = {
    'Content-Type': 'application/json',
    ...(signature === null ? {} : { 'Service-Signature': signature }),
  }
  const response = await fetch(url, { method: 'POST', headers, body })
  await response.body?.cancel()
  return response.status
}

/** What a receiver must take, and what it must not. The clock goes on, so none is at the very edge. */
async function holds(t: Test, url: string) {
  const accepted: Record<string, string> = {
    'what was just signed': header(),
    'what is older, but not too old': header([SECRET], 240),
    'what a clock that goes ahead signed': header([SECRET], -240),
    'both secrets, the new one first': header([OTHER, SECRET]),
    'both secrets, the old one first': header([SECRET, OTHER]),
    'another order, and schemes that do not exist yet': header().replace(
      /^(.*),(.*)$/,
      'v0=t=,$2,v2=abc/t=+,$1,new',
    ),
  }
  for (const [name, signature] of Object.entries(accepted)) {
    t.equal(await statusOf(url, signature), 204, name)
  }
  const [time, v1] = header().split(',')
  const refused: Record<string, string | null> = {
    'no header': null,
    'an empty header': '',
    words: 'hello',
    'another secret': header([OTHER]),
    'no secret': header(['']),
    'another body': header([SECRET], 0, `${BODY} `),
    'a signature that is too old': header([SECRET], 400),
    'one from too far ahead': header([SECRET], -400),
    // Not of the clock, which may have come to another second meanwhile.
    'another time': `t=${Number(time?.slice('t='.length)) - 1},${v1}`,
    'no time': `${v1}`,
    'a time that is no number': `t=now,${v1}`,
    'a time without end': `t=${'9'.repeat(5000)},${v1}`,
    'no signature': `${time}`,
    'an empty signature': `${time},v1=`,
    'a signature cut short': `${time},${v1?.slice(0, -2)}`,
    'another scheme': `${time},${v1?.replace('v1', 'v0')}`,
    'bytes that are no hexadecimal digits': `${time},v1=${'é'.repeat(64)}`,
  }
  for (const [name, signature] of Object.entries(refused)) {
    t.equal(await statusOf(url, signature), 400, name)
  }
  t.equal(await statusOf(url, header(), BODY.replace('möwe', 'mowe')), 400, 'a changed body')
  t.equal(await statusOf(url, header()), 204, 'and it still takes what is right')
  return Object.keys(accepted).length + 1
}

t.test('the page shows a program for each language, and no other', async (t) => {
  const files = Object.values(runners).map(({ file }) => file)
  t.same(Object.keys(programs), files)
  const lines = programs['receiver.mjs']?.split('\n').length ?? 0
  t.ok(lines > 10 && lines < 25, 'the first one is short')
})

for (const [name, runner] of Object.entries(runners)) {
  const skip = isAbsent(runner)
  t.test(`${name}: what is genuine is taken, all else refused`, { skip }, async (t) => {
    const { url, lines } = await startProgram(t, folder, runner, SECRET)
    const taken = await holds(t, url)
    await until('it to print what it took', async () => lines().length === taken)
    t.ok(lines().every((line) => line.startsWith('email.bounced')))
  })

  t.test(`${name}: without a secret nothing is taken`, { skip }, async (t) => {
    if (/receiver\.(mjs|php)$/.test(runner.file)) {
      const { url } = await startProgram(t, folder, runner, '')
      t.ok((await statusOf(url, header(['']))) >= 400)
    } else {
      const [command = '', ...args] = runner.command(0)
      const env = { PATH: process.env.PATH, PORT: '0', WEBHOOK_SECRET: '' }
      const { status, stderr } = spawnSync(command, args, { cwd: folder, env })
      t.not(status, 0)
      t.match(String(stderr), 'WEBHOOK_SECRET is not set')
    }
  })
}
