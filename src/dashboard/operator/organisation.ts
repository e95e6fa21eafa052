import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { type Form, parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { type Outcome, type Page, refusedIn, type Visit } from '../page.ts'
import { newKeyView } from '../pages/keys.ts'
import { actionButton, count, field, optionsOf, status, table, time } from '../parts.ts'
import { nullableTimestamp, organisationRow, timestamp } from './rows.ts'

const detailSchema = v.object({
  organisation: organisationRow,
  plans: v.array(v.string()),
  keys: v.array(
    v.object({
      prefix: v.string(),
      mode: v.string(),
      scopes: v.array(v.string()),
      last_used_on: v.nullable(v.string()),
      revoked_at: nullableTimestamp,
    }),
  ),
  members: v.array(v.object({ email: v.string(), role: v.string() })),
  ledger: v.array(
    v.object({
      id: v.number(),
      kind: v.string(),
      credits: v.number(),
      balance: v.number(),
      note: v.nullable(v.string()),
      created_at: timestamp,
    }),
  ),
})

type Detail = v.InferOutput<typeof detailSchema>

const MAX_CREDITS = 1_000_000_000

const noteSchema = v.strictObject({ note: v.string() })
const planSchema = v.strictObject({ plan: v.string() })
const modeSchema = v.strictObject({ mode: v.picklist(enums.mode) })
const prefixSchema = v.strictObject({ prefix: v.string() })
const nothingSchema = v.strictObject({})
const creditsSchema = v.strictObject({
  credits: v.pipe(
    v.string(),
    v.regex(/^-?\d{1,10}$/, 'must be a whole number'),
    v.check((text) => Math.abs(Number(text)) <= MAX_CREDITS, 'must be at most 1 000 000 000'),
  ),
  note: v.string(),
})

/** One organisation: its state, plan, credits, keys and members, and what an operator does about them. */
export function organisationPage(call: Call): Page {
  const pathOf = ({ id }: Visit) => `/operator/organisations/${id}`

  /** An action that ops has under the same name. */
  const change =
    (action: string, notice: string, read: (form: Form) => { value?: string; note?: string }) =>
    async (visit: Visit, form: Form): Promise<Outcome> => {
      const { session, id } = visit
      await call('dashboard_change_organisation', {
        session,
        organisation: id,
        action,
        ...read(form),
      })
      return { to: pathOf(visit), notice }
    }
  const noteOf = (form: Form) => parseForm(noteSchema, form)
  const nothingOf = (form: Form) => parseForm(nothingSchema, form)

  return {
    path: '/operator/organisations/:id',
    async show(visit) {
      const { session, id } = visit
      const row = await call('dashboard_organisation', { session, organisation: id })
      if (row === null)
        throw new Refusal('not_found', null, { message: 'There is no such organisation.' })
      const detail = v.parse(detailSchema, row)
      return { title: detail.organisation.name, content: detailOf(visit, detail, pathOf(visit)) }
    },

    actions: {
      'set-plan': change('set_plan', 'The plan is changed.', (form) => ({
        value: parseForm(planSchema, form).plan,
      })),
      'grant-credits': change('grant_credits', 'The credits are granted.', (form) => {
        const { credits, note } = parseForm(creditsSchema, form)
        return { value: credits, note }
      }),
      pause: change('pause', 'Sending is paused.', noteOf),
      resume: change('resume', 'Sending is resumed.', nothingOf),
      suspend: change('suspend', 'The organisation is suspended.', noteOf),
      reinstate: change('reinstate', 'The organisation is reinstated.', nothingOf),

      async 'create-key'(visit, form) {
        const { session, id } = visit
        const { mode } = parseForm(modeSchema, form)
        const key = await call('dashboard_operator_create_key', { session, organisation: id, mode })
        const back = html`<a href=${pathOf(visit)}>To the organisation</a>`
        return newKeyView('The new API key', key, back)
      },

      async 'revoke-key'(visit, form) {
        const { prefix } = parseForm(prefixSchema, form)
        await call('dashboard_operator_revoke_key', { session: visit.session, prefix })
        return { to: pathOf(visit), notice: `The key ${prefix}… is revoked.` }
      },

      async view({ session, id }) {
        await call('dashboard_view_organisation', { session, organisation: id })
        return { to: `/dashboard/${id}` }
      },
    },
  }
}

function detailOf(visit: Visit, detail: Detail, path: string): Content {
  const { organisation, members } = detail
  const { id, state, state_reason } = organisation
  return html`
    <p><code>${id}</code> ${status(state)} ${state_reason}</p>
    <p>Owner: ${organisation.owner_email}, created ${time(organisation.created_at)}, ${count(organisation.messages_waiting)} messages wait.</p>
    <p>${actionButton(`${path}/view`, 'View its dashboard')}</p>
    ${stateForms(visit, detail, path)}
    ${planAndCredits(visit, detail, path)}
    ${apiKeys(visit, detail, path)}
    <h2>Members</h2>
    ${table(
      'Members',
      members,
      [
        { label: 'Address', cell: ({ email }) => email },
        { label: 'Role', cell: ({ role }) => role },
      ],
      'The organisation has no members. Add one in psql: select ops.invite(…)',
    )}`
}

const noteField = (visit: Visit, action: string, label: string) =>
  field({ name: 'note', action, label, refused: refusedIn(visit, action), isRequired: true })

function stateForms(visit: Visit, { organisation: { state } }: Detail, path: string): Content {
  return html`
    <h2>State</h2>
    <div class="row">
      ${
        state === 'active' &&
        html`<form method="post" action=${`${path}/pause`} class="row">${noteField(visit, 'pause', 'Reason for the pause')}<button>Pause sending</button></form>`
      }
      ${state === 'paused' && actionButton(`${path}/resume`, 'Resume sending')}
      ${
        state === 'suspended'
          ? actionButton(`${path}/reinstate`, 'Reinstate')
          : html`<form method="post" action=${`${path}/suspend`} class="row">${noteField(visit, 'suspend', 'Reason for the suspension')}<button class="danger">Suspend</button></form>`
      }
    </div>`
}

function planAndCredits(
  visit: Visit,
  { organisation, plans, ledger }: Detail,
  path: string,
): Content {
  return html`
    <h2>Plan and credits</h2>
    <dl class="figures">
      <div><dt>Emails</dt><dd>${count(organisation.emails_used)} of ${count(organisation.emails_included)}</dd></div>
      <div><dt>SMS segments</dt><dd>${count(organisation.sms_used)} of ${count(organisation.sms_included)}</dd></div>
      <div><dt>SMS credits</dt><dd>${count(organisation.sms_credits)} credits</dd></div>
    </dl>
    <div class="row">
      <form method="post" action=${`${path}/set-plan`} class="row">
        ${field({ name: 'plan', label: 'Plan', refused: refusedIn(visit, 'set-plan'), value: organisation.plan, options: optionsOf(plans) })}
        <button>Change plan</button>
      </form>
      <form method="post" action=${`${path}/grant-credits`} class="row">
        ${field({ name: 'credits', label: 'Credits', refused: refusedIn(visit, 'grant-credits'), type: 'number', isRequired: true })}
        ${noteField(visit, 'grant-credits', 'Note, such as the invoice')}
        <button>Grant credits</button>
      </form>
    </div>
    ${table(
      'Newest entries of the credit ledger',
      ledger,
      [
        { label: 'Time', cell: ({ created_at }) => time(created_at) },
        { label: 'Kind', cell: ({ kind }) => kind },
        { label: 'Credits', isNumber: true, cell: ({ credits }) => count(credits) },
        { label: 'Balance', isNumber: true, cell: ({ balance }) => count(balance) },
        { label: 'Note', cell: (row) => row.note },
      ],
      'The credit ledger has no entry.',
    )}`
}

function apiKeys(visit: Visit, { keys }: Detail, path: string): Content {
  return html`
    <h2>API keys</h2>
    <form method="post" action=${`${path}/create-key`} class="row">
      ${field({ name: 'mode', label: 'Mode', refused: refusedIn(visit, 'create-key'), options: optionsOf(enums.mode) })}
      <button>Create key</button>
    </form>
    ${table(
      'API keys',
      keys,
      [
        { label: 'Key', cell: ({ prefix }) => html`<code>${prefix}…</code>` },
        { label: 'Mode', cell: ({ mode }) => mode },
        { label: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
        { label: 'Last used', cell: ({ last_used_on }) => last_used_on ?? 'never' },
        {
          label: '',
          cell: ({ prefix, revoked_at }) =>
            revoked_at
              ? html`revoked ${time(revoked_at)}`
              : actionButton(`${path}/revoke-key`, 'Revoke', { prefix }, 'danger'),
        },
      ],
      'There is no key.',
    )}`
}
