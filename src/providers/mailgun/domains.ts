import { DomainRefused, type Identity } from '../email.ts'
import { type Client, found } from './client.ts'
import { activate, dkimKey, keysOf, makeKey } from './keys.ts'
import { MailgunError } from './transport.ts'

type Domain = Awaited<ReturnType<Client['domains']['get']>>

/** Mailgun's own tracking is off: Postgram has its own unsubscribe links and lists. */
const TRACKING = ['open', 'click', 'unsubscribe']

/** Creates a domain at Mailgun, or completes one that was created in part. Throws DomainRefused. */
export async function createDomain(
  client: Client,
  { name, mailFrom, selectors }: { name: string; mailFrom: string; selectors: string[] },
): Promise<Identity> {
  const [first = '', second = ''] = selectors
  try {
    await ensureDomain(client, name, first)
    const domain = await client.domains.update(name, { mailfrom_host: mailFrom })
    for (const kind of TRACKING) {
      await client.domains.domainTracking.updateTracking(name, kind, { active: false })
    }
    const keys = await keysOf(client, name)
    const active = keys.get(first) ?? (await makeKey(client, name, first))
    const next = keys.get(second) ?? (await makeKey(client, name, second))
    // Mailgun refuses until the record is in DNS; checkDomain() repeats this.
    await activate(client, name, active)
    return {
      keys: [dkimKey(active, 'active'), dkimKey(next, 'next')],
      ...mailFromOf(domain, mailFrom),
    }
  } catch (error) {
    if (error instanceof MailgunError && error.isRefusal) throw new DomainRefused(error.message)
    throw error
  }
}

/**
 * Creates the domain with its first key. That key marks a domain as created by Postgram. Any other domain of
 * the same Mailgun account is refused, because an organisation that adds a domain can also delete it. An
 * operator who adds that key at Mailgun releases the domain to Postgram.
 */
async function ensureDomain(client: Client, name: string, selector: string) {
  try {
    await client.domains.create({
      name,
      dkim_selector: selector,
      // The types of mailgun.js require a number, but its form data requires text.
      dkim_key_size: '2048' as unknown as 2048,
      force_dkim_authority: true,
      use_automatic_sender_security: false,
    })
  } catch (refusal) {
    if (!(refusal instanceof MailgunError && refusal.isRefusal)) throw refusal
    if (!(await found(client.domains.get(name)))) throw refusal
    if ((await keysOf(client, name)).has(selector)) return
    throw new DomainRefused(
      'the Mailgun account already has this domain, and Postgram did not create it',
    )
  }
}

/** Returns the records that Mailgun requires at the MAIL FROM host, else at any host, else its usual ones. */
function mailFromOf(domain: Domain, mailFrom: string): Omit<Identity, 'keys'> {
  const records = [...(domain.receiving_dns_records ?? []), ...(domain.sending_dns_records ?? [])]
  const byPlace = [...records.filter(({ name }) => name === mailFrom), ...records]
  const mx = byPlace.find(({ record_type, value }) => record_type === 'MX' && HOST.test(value))
  const spf = byPlace.find(({ record_type, value }) => record_type === 'TXT' && SPF.test(value))
  return {
    mail_from_mx: { priority: Number(mx?.priority) || 10, host: mx?.value ?? 'mxa.mailgun.org' },
    mail_from_spf: spf?.value ?? 'v=spf1 include:mailgun.org ~all',
  }
}

const HOST = /^(?=.{1,253}$)(?:[a-z0-9-]+\.)+[a-z]+$/
const SPF = /^v=spf1 [\x20-\x7e]{1,500}$/

/** Makes Mailgun check DNS now, and activates the key of `selector`. */
export async function checkDomain(
  client: Client,
  name: string,
  selector?: string,
): Promise<'active' | 'unverified' | 'unknown'> {
  const domain = await found(client.domains.verify(name))
  if (!domain) return 'unknown'
  if (domain.state !== 'active') return 'unverified'
  if (!selector) return 'active'
  const keys = await keysOf(client, name)
  return (await activate(client, name, keys.get(selector))) ? 'active' : 'unverified'
}

/** Removes an address from Mailgun's suppression lists of a domain. */
export async function removeSuppression(
  client: Client,
  name: string,
  address: string,
): Promise<void> {
  for (const list of ['bounces', 'unsubscribes', 'complaints']) {
    await found(client.suppressions.destroy(name, list, address))
  }
}
