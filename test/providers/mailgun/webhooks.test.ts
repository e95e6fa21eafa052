import t from 'tap'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { startMailgun } from '../../fixtures/mailgun.ts'

const URL = 'https://postgram.test/providers/mailgun/events'
const WANTED = [
  ...['accepted', 'complained', 'delivered'],
  ...['permanent_fail', 'temporary_fail', 'unsubscribed'],
]

const mailgun = await startMailgun()
const provider = createMailgun({ ...mailgun.account, callbackUrl: URL })

const aDomain = (name: string) => ({
  name,
  mailFrom: `mail.${name}`,
  selectors: ['pg1', 'pg2', 'pg3'],
})
const webhooksOf = (name: string) => mailgun.domains.all.get(name)?.webhooks ?? new Map()
const changes = () =>
  mailgun.requests.filter((call) => /^(POST|PUT) .*\/webhooks/.test(call)).length

t.test('ensureWebhooks(): a new domain gets callbacks for all needed events', async (t) => {
  await provider.createDomain(aDomain('new.example'))
  const webhooks = webhooksOf('new.example')
  t.same([...webhooks.keys()].sort(), WANTED)
  t.ok([...webhooks.values()].every((urls) => urls.length === 1 && urls[0] === URL))
})

t.test('ensureWebhooks(): complete callbacks stay unchanged', async (t) => {
  await provider.createDomain(aDomain('right.example'))
  const before = changes()
  await provider.checkDomain('right.example', 'pg1')
  t.equal(changes(), before)
})

t.test('ensureWebhooks(): adds missing callbacks beside other URLs', async (t) => {
  await provider.createDomain(aDomain('lost.example'))
  const webhooks = webhooksOf('lost.example')
  webhooks.delete('accepted')
  webhooks.set('delivered', ['https://other.example/hook'])
  webhooks.set('complained', ['https://a.example', 'https://b.example', 'https://c.example'])
  await provider.checkDomain('lost.example', 'pg1')
  t.same(webhooks.get('accepted'), [URL])
  t.same(webhooks.get('delivered'), ['https://other.example/hook', URL])
  t.equal(webhooks.get('complained')?.length, 3, 'without a free place the other URLs stay')
})

t.test('ensureWebhooks(): a refused URL does not fail the domain', async (t) => {
  const odd = createMailgun({ ...mailgun.account, callbackUrl: 'ftp://postgram.test' })
  await odd.createDomain(aDomain('odd.example'))
  t.equal(webhooksOf('odd.example').size, 0)
})

t.test('ensureWebhooks(): without a URL the callbacks stay unchanged', async (t) => {
  const silent = createMailgun(mailgun.account)
  await silent.createDomain(aDomain('silent.example'))
  t.equal(webhooksOf('silent.example').size, 0)
})
