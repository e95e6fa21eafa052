import t from 'tap'
import { DomainRefused, ProviderUnavailable } from '../../../src/providers/email.ts'
import { createMailgun } from '../../../src/providers/mailgun/index.ts'
import { endTimeLimits, startMailgun } from '../../fixtures/mailgun.ts'

const mailgun = await startMailgun()
const { account, domains } = mailgun
const provider = createMailgun(account)

let made = 0

/** The arguments of createDomain. */
function aDomain() {
  made += 1
  const name = `domain${made}.example`
  return { name, mailFrom: `mail.${name}`, selectors: ['pg1', 'pg2', 'pg3'] }
}

function atMailgun(name: string) {
  const domain = domains.all.get(name)
  if (!domain) throw new Error(`Mailgun has no ${name}`)
  return domain
}

const errorOf = (asked: Promise<unknown>) =>
  asked.then(
    () => 'no error',
    (error) => error,
  )

t.test('createDomain(): sets key and MAIL FROM and turns tracking off', async (t) => {
  const domain = aDomain()
  const identity = await provider.createDomain(domain)
  const { form, keys, mailFrom, tracking } = atMailgun(domain.name)
  t.same(Object.fromEntries(form), {
    name: [domain.name],
    dkim_selector: ['pg1'],
    dkim_key_size: ['2048'],
    force_dkim_authority: ['true'],
    use_automatic_sender_security: ['false'],
  })
  t.equal(mailFrom, domain.mailFrom)
  t.same(
    [...tracking],
    [
      ['open', 'no'],
      ['click', 'no'],
      ['unsubscribe', 'no'],
    ],
  )
  t.same(identity, {
    keys: [
      { selector: 'pg1', state: 'active', value: keys.get('pg1')?.value, private_key: null },
      { selector: 'pg2', state: 'next', value: keys.get('pg2')?.value, private_key: null },
    ],
    mail_from_mx: { priority: 10, host: 'mxa.mailgun.org' },
    mail_from_spf: 'v=spf1 include:mailgun.org ~all',
  })
})

t.test("createDomain(): returns Mailgun's records, or its usual ones", async (t) => {
  const cases = [
    ['eu.mailgun.org', 'mxa.eu.mailgun.org', 'v=spf1 include:eu.mailgun.org ~all'],
    [null, 'mxa.mailgun.org', 'v=spf1 include:mailgun.org ~all'],
  ] as const
  for (const [region, host, spf] of cases) {
    domains.region = region
    const identity = await provider.createDomain(aDomain())
    t.match(identity, { mail_from_mx: { priority: 10, host }, mail_from_spf: spf })
  }
  domains.region = 'mailgun.org'
})

t.test('createDomain(): the next call completes an interrupted creation', async (t) => {
  const steps = [
    'POST /v4/domains',
    'PUT /v4/domains',
    'PUT /v3/domains',
    'GET .*/keys',
    'POST /v1/dkim',
  ]
  for (const isCarriedOut of [true, false]) {
    for (const step of steps) {
      const domain = aDomain()
      mailgun.expectTrouble(new RegExp(`^${step}`), { isCarriedOut, answer: 'reset' })
      t.type(await errorOf(provider.createDomain(domain)), ProviderUnavailable, step)
      const identity = await provider.createDomain(domain)
      t.same(
        identity.keys.map(({ selector }) => selector),
        ['pg1', 'pg2'],
      )
      t.same([...atMailgun(domain.name).keys.keys()], ['pg1', 'pg2'])
      t.equal(atMailgun(domain.name).mailFrom, domain.mailFrom)
      t.same(await provider.createDomain(domain), identity)
    }
  }
})

t.test('createDomain(): a name of another Mailgun account is refused', async (t) => {
  const domain = aDomain()
  domains.takenElsewhere.add(domain.name)
  const refusal = await errorOf(provider.createDomain(domain))
  t.type(refusal, DomainRefused)
  t.match(refusal, { message: 'This domain name is already taken' })
})

t.test('createDomain(): a domain that Postgram did not create is refused', async (t) => {
  const domain = aDomain()
  const others = domains.add(domain.name)
  t.type(await errorOf(provider.createDomain(domain)), DomainRefused)
  t.equal(others.mailFrom, domain.name)
  t.same([...others.keys.keys()], ['pic'])
  t.same([...others.tracking.values()], ['yes', 'yes', 'yes'])
})

t.test('createDomain(): an unclear response can be repeated', async (t) => {
  const domain = aDomain()
  const answers = [
    { status: 401, body: 'Forbidden' },
    { status: 403, body: { message: 'upgrade' } },
    { status: 429, body: { message: 'Too many' } },
    { status: 500, body: { message: 'Internal Server Error' } },
    { status: 200, body: {} },
    { status: 200, body: 'a page' },
    'half' as const,
    'nothing' as const,
  ]
  const untilTimeout = endTimeLimits(t, mailgun)
  const ask = (what: () => Promise<unknown>) => errorOf(untilTimeout(what))
  for (const answer of answers) {
    mailgun.expectTrouble(/^POST \/v4\/domains/, { isCarriedOut: false, answer })
    const made = await ask(() => provider.createDomain(domain))
    t.type(made, ProviderUnavailable, JSON.stringify(answer))
    mailgun.expectTrouble(/^PUT .*\/verify/, { isCarriedOut: false, answer })
    t.type(await ask(() => provider.checkDomain(domain.name)), ProviderUnavailable)
  }
  t.notOk(domains.all.has(domain.name))
})

t.test('createDomain(): malformed keys are refused', async (t) => {
  const domain = aDomain()
  const strange = [{}, { selector: 'pg1' }, { selector: 'pg1', dns_record: { value: '' } }]
  for (const item of strange) {
    const answer = { status: 200, body: { items: [item] } }
    mailgun.expectTrouble(/^GET .*\/keys/, { isCarriedOut: false, answer })
    t.type(await errorOf(provider.createDomain(domain)), ProviderUnavailable)
  }
})

t.test('checkDomain(): active if Mailgun says so and our key signs', async (t) => {
  const domain = aDomain()
  t.equal(await provider.checkDomain(domain.name, 'pg1'), 'unknown')
  await provider.createDomain(domain)
  t.equal(await provider.checkDomain(domain.name, 'pg1'), 'unverified')
  const { keys } = Object.assign(atMailgun(domain.name), { isPublished: true })
  for (const key of keys.values()) key.isActive = false
  t.equal(await provider.checkDomain(domain.name, 'pg1'), 'active')
  t.equal(keys.get('pg1')?.isActive, true)
  t.equal(keys.get('pg2')?.isActive, false)
  t.equal(await provider.checkDomain(domain.name, 'pg9'), 'unverified', 'no such key')

  const refusal = { status: 400, body: { message: 'dns records must be valid' } }
  mailgun.expectTrouble(/activate$/, { isCarriedOut: false, answer: refusal })
  t.equal(await provider.checkDomain(domain.name, 'pg2'), 'unverified')
})

t.test('rotateDkim(): the next call completes an interrupted rotation', async (t) => {
  const turn = { activate: 'pg2', retire: 'pg1', renew: 'pg3' }
  const steps = ['GET .*/keys', 'PUT .*/activate', 'PUT .*/deactivate', 'POST /v1/dkim']
  for (const isCarriedOut of [true, false]) {
    for (const step of steps) {
      const domain = aDomain()
      await provider.createDomain(domain)
      const { keys } = Object.assign(atMailgun(domain.name), { isPublished: true })
      mailgun.expectTrouble(new RegExp(`^${step}`), { isCarriedOut, answer: 'reset' })
      t.type(await errorOf(provider.rotateDkim(domain.name, turn)), ProviderUnavailable, step)
      const key = await provider.rotateDkim(domain.name, turn)
      t.same(key, {
        selector: 'pg3',
        state: 'next',
        value: keys.get('pg3')?.value,
        private_key: null,
      })
      const states = [...keys].map(([selector, { isActive }]) => [selector, isActive])
      t.same(states, [
        ['pg1', false],
        ['pg2', true],
        ['pg3', false],
      ])
    }
  }
})

t.test('rotateDkim(): a key that Mailgun does not find in DNS is not activated', async (t) => {
  const domain = aDomain()
  await provider.createDomain(domain)
  const turn = { activate: 'pg2', retire: 'pg1', renew: 'pg3' }
  t.type(await errorOf(provider.rotateDkim(domain.name, turn)), ProviderUnavailable)
  t.equal(atMailgun(domain.name).keys.get('pg1')?.isActive, true)
})

t.test("removeSuppression(): removes the address from all of Mailgun's lists", async (t) => {
  const { name } = aDomain()
  const { refused } = domains.add(name)
  const address = "o'b+c/d?e#f%g@example.com"
  for (const list of ['bounces', 'unsubscribes', 'complaints']) {
    refused.add(`${list} ${address}`).add(`${list} other@example.com`)
  }
  await provider.removeSuppression(name, address)
  t.equal(refused.size, 3)
  await provider.removeSuppression(name, 'never@example.com')
  await provider.removeSuppression('gone.example', address)
  mailgun.expectTrouble(/^DELETE .*complaints/, { isCarriedOut: true, answer: 'reset' })
  t.type(await errorOf(provider.removeSuppression(name, address)), ProviderUnavailable)
})
