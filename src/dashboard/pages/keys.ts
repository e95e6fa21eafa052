import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type View, type Visit } from '../page.ts'
import { actionButton, choices, copyable, field, table, time } from '../parts.ts'

const keysSchema = v.array(
  v.object({
    prefix: v.string(),
    mode: v.picklist(enums.mode),
    scopes: v.array(v.string()),
    createdAt: v.string(),
    lastUsedOn: v.nullable(v.string()),
    revokedAt: v.nullable(v.string()),
  }),
)

const createSchema = v.strictObject({
  mode: v.picklist(enums.mode, 'must be live or test'),
  scopes: v.array(v.picklist(enums.scope, 'must be scopes of the list')),
})

const revokeSchema = v.strictObject({ prefix: v.string() })

/** API keys: what they may do, when they were last used; owners create and revoke them. */
export function keysPage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/keys',

    async show(visit) {
      const { session, organisation } = visit
      const keys = v.parse(keysSchema, await call('dashboard_keys', { session, organisation }))
      const isOwner = hasRole(visit, 'owner')
      const content = html`
        ${isOwner && createForm(visit)}
        ${table(
          'API keys',
          keys,
          [
            { label: 'Key', cell: ({ prefix }) => html`<code>${prefix}…</code>` },
            { label: 'Mode', cell: ({ mode }) => mode },
            { label: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
            { label: 'Created', cell: ({ createdAt }) => time(createdAt) },
            { label: 'Last used', cell: ({ lastUsedOn }) => lastUsedOn ?? 'never' },
            {
              label: '',
              cell: ({ prefix, revokedAt }) =>
                revokedAt
                  ? html`revoked ${time(revokedAt)}`
                  : isOwner &&
                    actionButton(pathOf(visit, 'keys/revoke'), 'Revoke', { prefix }, 'danger'),
            },
          ],
          isOwner ? 'There is no key. Create one above.' : 'There is no key. An owner creates one.',
        )}`
      return { title: 'API keys', content }
    },

    actions: {
      async create(visit, form) {
        const { session, organisation } = visit
        const { mode, scopes } = parseForm(createSchema, form, ['scopes'])
        const key = await call('dashboard_create_key', { session, organisation, mode, scopes })
        const back = html`<a href=${pathOf(visit, 'keys')}>To the API keys</a>`
        return newKeyView('Your new API key', key, back)
      },

      async revoke(visit, form) {
        const { session, organisation } = visit
        const { prefix } = parseForm(revokeSchema, form)
        await call('dashboard_revoke_key', { session, organisation, prefix })
        return { to: pathOf(visit, 'keys'), notice: `The key ${prefix}… is revoked.` }
      },
    },
  }
}

/** A page that shows a new API key once, with a link back. */
export function newKeyView(title: string, key: string, back: Content): View {
  const content = html`
    <p>Copy the key now. It is shown only once; the database stores its hash.</p>
    <p>${copyable(key)}</p>
    <p>${back}</p>`
  return { title, content }
}

function createForm(visit: Visit) {
  const { refused } = visit
  return html`<details open=${refused !== null}>
    <summary>Create an API key</summary>
    <form method="post" action=${pathOf(visit, 'keys/create')} class="stack">
      ${field({
        name: 'mode',
        label: 'Mode',
        refused,
        options: [
          { value: 'live', label: 'live: sends for real' },
          { value: 'test', label: 'test: sends nothing' },
        ],
      })}
      ${choices({ name: 'scopes', legend: 'Scopes', values: enums.scope, chosen: enums.scope, refused })}
      <button>Create key</button>
    </form>
  </details>`
}
