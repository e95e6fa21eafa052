import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import type { Registry } from '../../domains/registry.ts'
import { domainSchema } from '../../schemas/domain.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import { actionButton, copyable, count, field, nextLink, status, table, time } from '../parts.ts'

const DOMAIN_ID = /^dom_[0-7][0-9a-hjkmnp-tv-z]{25}$/

const recordSchema = v.object({
  purpose: v.picklist(['dkim', 'mail_from_mx', 'mail_from_spf', 'dmarc']),
  type: v.string(),
  name: v.string(),
  value: v.string(),
  required: v.boolean(),
  status: v.picklist(['pending', 'verified', 'missing', 'mismatch']),
  found: v.array(v.string()),
})

const domainObjectSchema = v.object({
  id: v.string(),
  name: v.string(),
  status: v.picklist(enums.domain_status),
  records: v.array(recordSchema),
  verifiedAt: v.nullable(v.string()),
  lastCheckedAt: v.string(),
})

const listSchema = v.object({
  held: v.number(),
  included: v.number(),
  domains: v.array(
    v.object({
      ...domainObjectSchema.entries,
      isManuallyVerified: v.boolean(),
      isBeingRemoved: v.boolean(),
      wrongSince: v.nullable(v.string()),
      failsAt: v.nullable(v.string()),
      nextCheckAt: v.nullable(v.string()),
    }),
  ),
  nextCursor: v.nullable(v.string()),
})

const idSchema = v.strictObject({ id: v.string() })

type DnsRecord = v.InferOutput<typeof recordSchema>
type Domain = v.InferOutput<typeof listSchema>['domains'][number]

const PURPOSES: Record<DnsRecord['purpose'], string> = {
  dkim: 'DKIM',
  mail_from_mx: 'MAIL FROM, MX',
  mail_from_spf: 'MAIL FROM, SPF',
  dmarc: 'DMARC',
}

/** Domains: the records to publish and what was found; members add, check and remove them. */
export function domainsPage(call: Call, registry: Registry): Page {
  /** Returns the arguments of the registry: the organisation, and the user, who must be a member. */
  async function memberOf({ session, organisation, frame }: Visit) {
    const id = await call('dashboard_organisation_id', { session, organisation, role: 'member' })
    return {
      caller: { organisation_id: id, mode: 'live', fingerprint: '' },
      asker: { actor: frame.email },
    }
  }

  return {
    path: '/dashboard/:organisation/domains',

    async show(visit) {
      const { session, organisation, query } = visit
      const cursor = DOMAIN_ID.test(query.after ?? '') ? query.after : undefined
      const list = v.parse(
        listSchema,
        await call('dashboard_domains', { session, organisation, ...(cursor && { cursor }) }),
      )
      const isMember = hasRole(visit, 'member')
      const content = html`
        ${isMember && addForm(visit)}
        <p class="hint">${count(list.held)} of the ${count(list.included)} domains that the plan includes.</p>
        ${list.domains.map((domain) => section(visit, domain, isMember))}
        ${
          list.domains.length === 0 &&
          html`<div class="empty">There is no domain. ${
            isMember ? 'Add the one that you send from above' : 'A member adds the first one'
          }, then publish its records.</div>`
        }
        ${nextLink(list.nextCursor && `${pathOf(visit, 'domains')}?after=${list.nextCursor}`)}`
      return { title: 'Domains', content }
    },

    actions: {
      async add(visit, form) {
        const { caller, asker } = await memberOf(visit)
        const { name } = parseForm(domainSchema, form)
        const { status } = await registry.add(caller, name, asker)
        const notice =
          status === 201
            ? `${name} is added. Publish its records, then check it.`
            : `The organisation already has ${name}.`
        return { to: pathOf(visit, 'domains'), notice }
      },

      async check(visit, form) {
        const { caller, asker } = await memberOf(visit)
        const { id } = parseForm(idSchema, form)
        const { body } = await registry.verify(caller, id, asker)
        const { name, status, records } = v.parse(domainObjectSchema, JSON.parse(body))
        const wrong = records.filter((record) => record.required && record.status !== 'verified')
        const notice =
          wrong.length === 0
            ? `${name} was checked: all required records are correct. It is ${status}.`
            : `${name} was checked: ${wrong.length} of its required records are not correct.`
        return { to: pathOf(visit, 'domains') + visit.ctx.search, notice }
      },

      async remove(visit, form) {
        const { caller, asker } = await memberOf(visit)
        const { id } = parseForm(idSchema, form)
        await registry.remove(caller.organisation_id, id, asker)
        return { to: pathOf(visit, 'domains'), notice: 'The domain is removed.' }
      },
    },
  }
}

function addForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'add')
  return html`
    <details open=${refused !== null}>
      <summary>Add a domain</summary>
      <form method="post" action=${pathOf(visit, 'domains/add')} class="stack">
        ${field({
          name: 'name',
          label: 'Domain',
          refused,
          isRequired: true,
          hint: 'For example shop.example.com. Email can also be sent from the domains below it.',
        })}
        <button>Add domain</button>
      </form>
    </details>`
}

function section(visit: Visit, domain: Domain, isMember: boolean): Content {
  const { id, name, records, isBeingRemoved } = domain
  const isCorrect = records.every((record) => !record.required || record.status === 'verified')
  return html`<section aria-labelledby=${id}>
    <h2 id=${id}>${name} ${status(domain.status)}</h2>
    <p>${stateOf(domain)}</p>
    ${
      isMember &&
      !isBeingRemoved &&
      html`<div class="actions">
        ${actionButton(pathOf(visit, 'domains/check') + visit.ctx.search, 'Check now', { id })}
        <details>
          <summary>Remove</summary>
          <p>Email from ${name} is refused from then on.</p>
          ${actionButton(pathOf(visit, 'domains/remove'), 'Remove domain', { id }, 'danger')}
        </details>
      </div>`
    }
    <details open=${!isCorrect}>
      <summary>Records</summary>
      ${table(
        `Records of ${name}`,
        records,
        [
          {
            label: 'Purpose',
            cell: ({ purpose, required }) =>
              `${PURPOSES[purpose]}${required ? '' : ' (recommended)'}`,
          },
          { label: 'Type', cell: ({ type }) => html`<span class="word">${type}</span>` },
          { label: 'Name', cell: ({ name }) => copyable(name) },
          { label: 'Wanted', cell: ({ value }) => copyable(value) },
          { label: 'Found', cell: found },
          { label: 'Status', cell: (record) => status(record.status) },
        ],
        'The records appear after the first check.',
      )}
    </details>
  </section>`
}

/** What a check found at the name of a record. */
function found({ status, found }: DnsRecord): Content {
  if (status === 'pending') return 'not checked yet'
  if (found.length === 0) return html`<span class="word">nothing</span>`
  return found.map((text) => html`<div><code>${text}</code></div>`)
}

/** Whether the domain can send, since when its records are wrong, and what follows. */
function stateOf(domain: Domain): Content {
  const { status, wrongSince, failsAt, isManuallyVerified, isBeingRemoved, verifiedAt } = domain
  if (isBeingRemoved) return 'It is being removed.'
  const wasChecked = domain.records.some((record) => record.status !== 'pending')
  const checked = wasChecked && html` Last checked ${time(domain.lastCheckedAt)}.`
  if (status === 'pending') {
    return html`Publish the records below. The domain fails at ${time(failsAt)} unless all required records are found.${checked}`
  }
  if (status === 'failed') {
    return html`Email from it is refused. Correct the records below, then check it.${checked}`
  }
  if (wrongSince === null) return html`Verified ${time(verifiedAt)}.${checked}`
  return html`Required records are wrong since ${time(wrongSince)}. ${
    isManuallyVerified
      ? 'An operator verified the domain, so it does not fail.'
      : html`If they stay wrong, the domain fails at ${time(failsAt)}, and email from it is refused.`
  }${checked}`
}
