import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { type Form, parseForm, textOf } from '../form.ts'
import { html } from '../html.ts'
import type { Page, Visit } from '../page.ts'
import { count, field, table } from '../parts.ts'

const planSchema = v.object({
  id: v.string(),
  name: v.string(),
  price_rand: v.number(),
  emails_included: v.number(),
  sms_included: v.number(),
  domains_included: v.number(),
  test_messages_daily: v.number(),
  organisations: v.number(),
})

type Plan = v.InferOutput<typeof planSchema>

/** The numbers of a plan, in the order of the form. */
const TERMS = [
  ['price_rand', 'Price in rand a month'],
  ['emails_included', 'Emails'],
  ['sms_included', 'SMS segments'],
  ['domains_included', 'Domains'],
  ['test_messages_daily', 'Test messages a day'],
] as const

const amount = v.pipe(
  v.string(),
  v.regex(/^\d{1,9}$/, 'must be a whole number of at most 9 digits'),
  v.transform(Number),
)

const termsSchema = v.strictObject({
  plan: v.string(),
  name: v.string(),
  price_rand: amount,
  emails_included: amount,
  sms_included: amount,
  domains_included: amount,
  test_messages_daily: amount,
})

/** Plans: their prices, what they include, and how many organisations have them. */
export function plansPage(call: Call): Page {
  const save = (isNew: boolean, notice: string) => async (visit: Visit, form: Form) => {
    const terms = parseForm(termsSchema, form)
    await call('dashboard_set_plan_terms', { session: visit.session, is_new: isNew, ...terms })
    return { to: '/operator/plans', notice }
  }
  return {
    path: '/operator/plans',
    async show({ session, query, refused }) {
      const plans = v.parse(v.array(planSchema), await call('dashboard_plans', { session }))
      const chosen = refused ? textOf(refused.form, 'plan') : query.plan
      const plan = plans.find(({ id }) => id === chosen) ?? null
      const content = html`
        ${table(
          'Plans',
          plans,
          [
            {
              label: 'Plan',
              cell: ({ id }) => html`<a href=${`/operator/plans?plan=${id}`}>${id}</a>`,
            },
            { label: 'Name', cell: ({ name }) => name },
            ...TERMS.map(([key, label]) => ({
              label,
              isNumber: true,
              cell: (row: Plan) => count(row[key]),
            })),
            {
              label: 'Organisations',
              isNumber: true,
              cell: ({ organisations }) => count(organisations),
            },
          ],
          'There is no plan. Create one below.',
        )}
        <h2>${plan ? `Change ${plan.id} for all its organisations` : 'Create a plan'}</h2>
        <form method="post" action=${plan ? '/operator/plans/change' : '/operator/plans/create'} class="stack">
          ${
            plan
              ? html`<input type="hidden" name="plan" value=${plan.id} />`
              : field({ name: 'plan', label: 'ID, such as growth', refused, isRequired: true })
          }
          ${field({ name: 'name', label: 'Name', refused, value: plan?.name ?? '', isRequired: true })}
          ${TERMS.map(([name, label]) =>
            field({
              name,
              label,
              refused,
              type: 'number',
              value: String(plan?.[name] ?? (name === 'test_messages_daily' ? 10_000 : 0)),
              isRequired: true,
            }),
          )}
          <button>${plan ? 'Change plan' : 'Create plan'}</button>
        </form>`
      return { title: 'Plans', content }
    },
    actions: {
      create: save(true, 'The plan is created.'),
      change: save(false, 'The plan is changed.'),
    },
  }
}
