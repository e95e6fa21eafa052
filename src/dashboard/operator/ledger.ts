import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { type Content, html } from '../html.ts'
import type { Page } from '../page.ts'
import { actionButton, count, table } from '../parts.ts'
import { linkTo } from './rows.ts'

const balanceSchema = v.object({
  organisation: v.string(),
  sms_credits: v.number(),
  ledger_credits: v.number(),
})

const checkSchema = v.object({
  ...balanceSchema.entries,
  sms_used: v.number(),
  ledger_sms_used: v.number(),
  wrong_balances: v.number(),
  wrong_refunds: v.number(),
})

type Balance = v.InferOutput<typeof balanceSchema>
type Check = v.InferOutput<typeof checkSchema>

const TITLE = 'Ledger check'

const BALANCE_COLUMNS = [
  { label: 'Organisation', cell: ({ organisation }: Balance) => linkTo(organisation) },
  numbers('Credits', ({ sms_credits }: Balance) => sms_credits),
  numbers('By the ledger', ({ ledger_credits }: Balance) => ledger_credits),
]

const CHECK_COLUMNS = [
  ...BALANCE_COLUMNS,
  numbers('SMS of the plan', ({ sms_used }: Check) => sms_used),
  numbers('By the ledger', ({ ledger_sms_used }: Check) => ledger_sms_used),
  numbers('Wrong balances', ({ wrong_balances }: Check) => wrong_balances),
  numbers('Wrong refunds', ({ wrong_refunds }: Check) => wrong_refunds),
]

/** Organisations whose credits differ from the ledger: by its newest balances, on request by all of its movements. */
export function ledgerPage(call: Call): Page {
  return {
    path: '/operator/ledger',

    async show({ session }) {
      const rows = v.parse(v.array(balanceSchema), await call('dashboard_ledger', { session }))
      const content = html`
        ${table(TITLE, rows, BALANCE_COLUMNS, 'The credits of each organisation equal its newest balance in the ledger.')}
        ${checkButton()}`
      return { title: TITLE, content }
    },

    actions: {
      async check({ session }) {
        const rows = v.parse(
          v.array(checkSchema),
          await call('dashboard_ledger', { session, is_whole: true }),
        )
        const content = html`
          ${table(TITLE, rows, CHECK_COLUMNS, 'The whole ledger agrees with the credits and the usage of each organisation.')}
          ${checkButton()}`
        return { title: TITLE, content }
      },
    },
  }
}

function checkButton(): Content {
  return html`<p>${actionButton('/operator/ledger/check', 'Check the whole ledger')}</p>
    <p class="hint">This reads every movement. Of a ledger with millions of movements, use <code>ops.ledger_check</code>
    in psql.</p>`
}

function numbers<Row>(label: string, value: (row: Row) => number) {
  return { label, isNumber: true, cell: (row: Row) => count(value(row)) }
}
