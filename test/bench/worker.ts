// Attempts emails at a provider that responds at once, or SMS at the SMSC of a port: it measures the worker. "naive"
// takes each job, and starts, finishes and completes it in transactions of its own.

import { run } from 'graphile-worker'
import { pino } from 'pino'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Call, caller } from '../../src/db/call.ts'
import { connect } from '../../src/db/client.ts'
import { createResolver } from '../../src/domains/resolver.ts'
import type { EmailProvider } from '../../src/providers/email.ts'
import { createSmsProvider, type SmsSettings } from '../../src/providers/index.ts'
import { createSandbox } from '../../src/providers/sandbox/email.ts'
import { startService } from '../../src/service/index.ts'

const [, , url = '', form, smscPort] = process.argv
const sms: SmsSettings = smscPort
  ? {
      provider: 'smpp',
      url: `smpp://bench:bench@127.0.0.1:${smscPort}`,
      window: 200,
      rate: 100_000,
      countryCode: null,
    }
  : { provider: 'sandbox' }
const createProvider = (call: Call): EmailProvider => ({
  ...createSandbox(call),
  name: 'instant',
  send: async () => ({ outcome: 'sent' }),
})

if (form === 'naive') {
  const call = caller(connect(url, { role: 'postgram_service', max: 20 }))
  const provider = createProvider(call)
  const attempt = async (id: string, job: string) => {
    const [email] = await call('start_emails', { ids: [id] })
    if (!email) return
    const result = await provider.send({ ...email, copy: null })
    await call('finish_messages', { results: [{ id, job, provider: provider.name, ...result }] })
  }
  await run({
    connectionString: url,
    concurrency: 20,
    maxPoolSize: 20,
    taskList: {
      send_email: (payload, { job }) => attempt((payload as { id: string }).id, job.id),
      async send_emails(payload, { job }) {
        for (const id of payload as string[]) await attempt(id, job.id)
      },
    },
  })
} else {
  await startService({
    url,
    roles: ['worker'],
    host: '127.0.0.1',
    port: 0,
    publicUrl: null,
    createEmailProvider: createProvider,
    createSmsProvider: (call, listener, log) => createSmsProvider({ sms, call, listener, log }),
    hasSandboxMessages: false,
    hasSandboxSms: false,
    secrets: createSecrets([Buffer.alloc(32).toString('base64')]),
    resolver: createResolver({ servers: [], hasSandbox: true }),
    dnsServers: [],
    webhookAllowPrivate: true,
    dkimZone: 'dkim.postgram.test',
    mailFromLabel: 'mail',
    systemFrom: 'postgram@sandbox.postgram.test',
    workerConcurrency: 200,
    smsConcurrency: 400,
    metricsPort: null,
    clock: {},
    log: pino({ level: 'warn' }),
  })
}
console.log('{}')
