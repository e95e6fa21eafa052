import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { type Content, html } from '../html.ts'
import { type Page, pathOf, type Visit } from '../page.ts'
import { count, nextLink, pageOf, table, time } from '../parts.ts'
import { bars } from '../plot.ts'

const allowance = { used: v.number(), included: v.number() }

/** The usage object of an organisation (core.usage_object). */
export const usageSchema = v.object({
  plan: v.object({ name: v.string(), priceRand: v.number() }),
  period: v.object({ start: v.string(), end: v.string() }),
  emails: v.object({ ...allowance, remaining: v.number() }),
  sms: v.object({ ...allowance, remaining: v.number(), credits: v.number() }),
  domains: v.object(allowance),
})

const pageSchema = v.object({
  usage: usageSchema,
  days: v.array(
    v.object({
      day: v.string(),
      emails: v.number(),
      sms: v.number(),
      emailsLeft: v.number(),
      smsLeft: v.number(),
    }),
  ),
  statements: v.array(
    v.object({
      start: v.string(),
      end: v.string(),
      planName: v.string(),
      priceRand: v.number(),
      emailsUsed: v.number(),
      emailsIncluded: v.number(),
      smsUsed: v.number(),
      smsIncluded: v.number(),
      credits: v.number(),
    }),
  ),
})

type Usage = v.InferOutput<typeof pageSchema>

/** Usage: the period and the plan, what was used and what is left by day, and past statements. */
export function usagePage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/usage',

    async show(visit) {
      const { session, organisation, query } = visit
      const before = new Date(query.statements ?? '')
      const args = {
        session,
        organisation,
        ...(!Number.isNaN(before.getTime()) && { statements_before: before }),
      }
      const usage = v.parse(pageSchema, await call('dashboard_usage', args))
      const content = html`
        ${period(usage.usage)}
        ${byDay(usage.days)}
        ${statements(visit, usage.statements)}`
      return { title: 'Usage', content }
    },
  }
}

function period({ plan, period, emails, sms, domains }: Usage['usage']): Content {
  const rows = [
    { name: 'Email recipients', ...emails },
    { name: 'SMS segments', ...sms },
    {
      name: 'Domains',
      ...domains,
      remaining: Math.max(0, domains.included - domains.used),
    },
  ]
  return html`<section>
    <h2>Current period</h2>
    <p>Plan ${plan.name}, R ${count(plan.priceRand)} a month. The period began on ${time(period.start)} and ends on ${time(period.end)}.</p>
    ${table(
      'Current period',
      rows,
      [
        { label: 'Of the plan', cell: ({ name }) => name },
        { label: 'Included', cell: ({ included }) => count(included), isNumber: true },
        { label: 'Used', cell: ({ used }) => count(used), isNumber: true },
        { label: 'Left', cell: ({ remaining }) => count(remaining), isNumber: true },
      ],
      null,
    )}
    <p>SMS credits left: ${count(sms.credits)}. They pay for SMS when the segments of the plan are used.</p>
  </section>`
}

function byDay(days: Usage['days']): Content {
  return html`<section>
    <h2>Email recipients by day</h2>
    ${bars({
      label: 'Email recipients by day',
      days: days.map(({ day, emails, emailsLeft }) => ({
        day,
        parts: [{ name: 'used', value: emails, tone: 'accent' as const }],
        more: [{ name: 'left', value: emailsLeft }],
      })),
    })}
    <h2>SMS segments by day</h2>
    ${bars({
      label: 'SMS segments by day',
      days: days.map(({ day, sms, smsLeft }) => ({
        day,
        parts: [{ name: 'used', value: sms, tone: 'accent' as const }],
        more: [{ name: 'left', value: smsLeft }],
      })),
    })}
    <p class="hint">Left: of the plan, at the end of the day. Days are in UTC and at most a minute old. The first day began before the period. SMS paid with credits
      count; SMS that were refunded count on their day.</p>
  </section>`
}

function statements(visit: Visit, statements: Usage['statements']): Content {
  const { page, last } = pageOf(statements)
  return html`<section id="statements">
    <h2>Past statements</h2>
    ${table(
      'Past statements',
      page,
      [
        { label: 'From', cell: ({ start }) => time(start) },
        { label: 'To', cell: ({ end }) => time(end) },
        { label: 'Plan', cell: ({ planName }) => planName },
        { label: 'Price', cell: ({ priceRand }) => `R ${count(priceRand)}`, isNumber: true },
        {
          label: 'Email recipients',
          cell: ({ emailsUsed, emailsIncluded }) =>
            `${count(emailsUsed)} of ${count(emailsIncluded)}`,
          isNumber: true,
        },
        {
          label: 'SMS segments',
          cell: ({ smsUsed, smsIncluded }) => `${count(smsUsed)} of ${count(smsIncluded)}`,
          isNumber: true,
        },
        { label: 'Credits at the end', cell: ({ credits }) => count(credits), isNumber: true },
      ],
      'No period has ended yet. The first statement appears here when the current period ends.',
    )}
    ${nextLink(last && `${pathOf(visit, 'usage')}?statements=${last.start}#statements`)}
  </section>`
}
