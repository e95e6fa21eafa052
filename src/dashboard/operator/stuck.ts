import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { parseForm } from '../form.ts'
import { html } from '../html.ts'
import type { Page } from '../page.ts'
import { actionButton, count, table, time } from '../parts.ts'
import { linkTo } from './rows.ts'

const stuckSchema = v.array(
  v.object({
    id: v.string(),
    organisation: v.string(),
    to: v.string(),
    attempts: v.number(),
    since: v.string(),
    why: v.string(),
  }),
)

type Stuck = v.InferOutput<typeof stuckSchema>[number]

const retrySchema = v.strictObject({ messages: v.string() })

/** Reasons that differ only in numbers, times and IDs are one. */
const VARYING = /\b(em|sm|org|dom)_[0-9a-z]{26}\b|\d[\d.,:TZ-]*/g

/** Messages that wait longer than a minute, grouped by reason. */
export function stuckPage(call: Call): Page {
  return {
    path: '/operator/stuck',
    async show({ session }) {
      const stuck = v.parse(stuckSchema, await call('dashboard_stuck', { session }))
      const groups = [...Map.groupBy(stuck, ({ why }) => why.replace(VARYING, '…')).values()].sort(
        (a, b) => b.length - a.length,
      )
      const content =
        groups.length === 0
          ? html`<div class="empty">No message waits longer than a minute.</div>`
          : groups.map((messages) => group(messages))
      return { title: 'Stuck messages', content }
    },

    actions: {
      async retry({ session }, form) {
        const { messages } = parseForm(retrySchema, form)
        const ids = messages.split(' ').filter((id) => id !== '')
        const retried = await call('dashboard_retry_stuck', { session, messages: ids })
        return { to: '/operator/stuck', notice: `Retried: ${retried}.` }
      },
    },
  }
}

function group(messages: readonly Stuck[]) {
  const [first] = messages
  const ids = messages.map(({ id }) => id).join(' ')
  return html`<section>
    <h2>${count(messages.length)} × ${first?.why}</h2>
    <p>${actionButton('/operator/stuck/retry', `Retry all ${messages.length}`, { messages: ids })}</p>
    ${table(
      'Messages with this reason',
      messages.slice(0, 20),
      [
        { label: 'Message', cell: ({ id }) => html`<code>${id}</code>` },
        { label: 'Organisation', cell: ({ organisation }) => linkTo(organisation) },
        { label: 'To', cell: ({ to }) => to },
        { label: 'Waits since', cell: ({ since }) => time(since) },
        { label: 'Attempts', isNumber: true, cell: ({ attempts }) => attempts },
        {
          label: '',
          cell: ({ id }) => actionButton('/operator/stuck/retry', 'Retry', { messages: id }),
        },
      ],
      null,
    )}
  </section>`
}
