import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { sign } from '../../src/webhooks/attempt.ts'
import { messageFields } from '../fixtures/pages.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** A foreign project with only the npm package installed. */
const project = await mkdtemp(join(tmpdir(), 'postgram-receiver-'))
t.teardown(() => rm(project, { recursive: true }))
const installed = join(project, 'node_modules/postgram')
await mkdir(installed, { recursive: true })
// npm does not use the user's files.
const npm = ['--offline', '--cache', join(project, '.npm'), '--loglevel', 'error']
const { stdout } = await run('npm', ['pack', root, '--pack-destination', project, ...npm], {
  cwd: project,
})
const archive = join(project, stdout.trim())
await run('tar', ['-xf', archive, '-C', installed, '--strip-components', '1'])

const secret = `whsec_${'5'.repeat(64)}`

async function save(name: string, text: string): Promise<string> {
  const file = join(project, name)
  await writeFile(file, text)
  return file
}

t.test('the package holds the runtime files and the changelog', async (t) => {
  t.same((await readdir(installed)).sort(), [
    ...['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json', 'sql', 'src', 'tasks'],
  ])
})

t.test('a receiver imports postgram/webhooks and verifies', async (t) => {
  const body = '{"id":"evt_1","type":"sms.sent"}'
  const signature = sign(body, [secret], Math.floor(Date.now() / 1000))
  const receiver = await save(
    'receiver.mjs',
    `import { verifyEvent, WebhookSignatureError } from 'postgram/webhooks'
const [body, signature, secret] = process.argv.slice(2)
console.log(verifyEvent({ body, signature, secrets: secret }).type)
try {
  verifyEvent({ body: body + ' ', signature, secrets: secret })
} catch (error) {
  console.log(error instanceof WebhookSignatureError, error.reason)
}
`,
  )
  const output = await run(process.execPath, [receiver, body, signature, secret], { cwd: project })
  t.strictSame(output, { stdout: 'sms.sent\ntrue no_match\n', stderr: '' })
})

t.test('a receiver in CommonJS requires postgram/webhooks and verifies', async (t) => {
  const receiver = await save(
    'receiver.cjs',
    "console.log(typeof require('postgram/webhooks').verifyEvent)",
  )
  const output = await run(process.execPath, [receiver], { cwd: project })
  t.strictSame(output, { stdout: 'function\n', stderr: '' })
})

t.test('verify.js works as a single copied file', async (t) => {
  const copied = await save(
    'verify.mjs',
    await readFile(join(installed, 'src/webhooks/verify.js'), 'utf8'),
  )
  const { verifyEvent } = await import(copied)
  const signature = sign('{}', [secret], Math.floor(Date.now() / 1000))
  t.strictSame(verifyEvent({ body: '{}', signature, secrets: [secret] }), {})
})

/** A statement that compiles if the type has exactly the fields of the API reference. */
async function hasFields(type: string, channel: 'email' | 'sms'): Promise<string> {
  const fields = (await messageFields(channel)).map((name) => `${name}: true`)
  return `const ${channel}: Record<keyof ${type}, true> = { ${fields.join(', ')} }`
}

t.test('TypeScript narrows the event by its type, and knows the fields of messages', async (t) => {
  await save(
    'receiver.mts',
    `import { verifyEvent, WebhookSignatureError } from 'postgram/webhooks'
import type { EmailMessage, SmsMessage, WebhookEvent } from 'postgram/webhooks'
${await hasFields('EmailMessage', 'email')}
${await hasFields('SmsMessage', 'sms')}
declare const body: Uint8Array
const event: WebhookEvent = verifyEvent({ body, signature: null, secrets: ['whsec_'] })
switch (event.type) {
  case 'email.sent':
  case 'email.delivered':
  case 'email.bounced':
  case 'email.complained':
  case 'email.failed': {
    const subject: string = event.data.subject
    break
  }
  case 'sms.sent':
  case 'sms.delivered':
  case 'sms.failed':
  case 'sms.opted_out': {
    const credits: number = event.data.credits
    // @ts-expect-error an SMS has none
    const subject: string = event.data.subject
    break
  }
  default: {
    const none: never = event
  }
}
const reason: string = new WebhookSignatureError('too_old', '').reason
// @ts-expect-error a body that was parsed
verifyEvent({ body: {}, signature: '', secrets: '' })
`,
  )
  await save(
    'tsconfig.json',
    JSON.stringify({
      compilerOptions: {
        noEmit: true,
        strict: true,
        module: 'nodenext',
        target: 'es2022',
        types: [],
      },
      files: ['receiver.mts'],
    }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  // The test runner passes its loader to every process; a receiver has none.
  const plain = ['-c', 'unset NODE_OPTIONS; exec "$0" "$1"', process.execPath, tsc]
  const output = await run('sh', plain, { cwd: project }).catch((error) => error)
  t.strictSame([output.stdout, output.stderr], ['', ''], 'src/webhooks/verify.d.ts fits')
})
