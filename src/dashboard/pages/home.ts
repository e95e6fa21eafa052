import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { type Content, html } from '../html.ts'
import { type Page, pathOf, type Visit } from '../page.ts'
import { count, time } from '../parts.ts'
import { bars } from '../plot.ts'

const homeSchema = v.object({
  plan: v.object({ name: v.string(), emailsIncluded: v.number(), smsIncluded: v.number() }),
  usage: v.object({
    periodEnd: v.string(),
    emailsUsed: v.number(),
    smsUsed: v.number(),
    smsCredits: v.number(),
  }),
  domains: v.nullable(
    v.array(
      v.object({
        id: v.string(),
        name: v.string(),
        status: v.picklist(enums.domain_status),
        wrongRecords: v.array(v.string()),
        wrongSince: v.nullable(v.string()),
      }),
    ),
  ),
  hasDomain: v.boolean(),
  endpoints: v.nullable(
    v.array(
      v.object({
        id: v.string(),
        url: v.string(),
        failingSince: v.nullable(v.string()),
        disabledAt: v.nullable(v.string()),
        lastError: v.nullable(v.string()),
      }),
    ),
  ),
  hasKey: v.boolean(),
  hasMessages: v.boolean(),
  days: v.array(
    v.object({
      day: v.string(),
      accepted: v.number(),
      sent: v.number(),
      delivered: v.number(),
      bounced: v.number(),
      complained: v.number(),
      failed: v.number(),
      emailsSent: v.number(),
      emailsBounced: v.number(),
    }),
  ),
})

type Home = v.InferOutput<typeof homeSchema>
type Day = Home['days'][number]

/** From this share of the allowance on, the page warns. */
const ALLOWANCE_WARNING = 0.8

/** Credits below this number are shown as low once the plan's segments are used up. */
const LOW_CREDITS = 100

/** At this share of complaints the service pauses an organisation (core.pause_for_complaints). */
const COMPLAINT_LIMIT = 0.001

/** The home page: problems first, then 30 days of outcomes, rates, and usage. */
export function homePage(call: Call): Page {
  return {
    path: '/dashboard/:organisation',
    async show(visit) {
      const { session, organisation } = visit
      const home = v.parse(homeSchema, await call('dashboard_home', { session, organisation }))
      const content = html`
        ${problems(visit, home)}
        ${home.hasMessages ? outcomes(visit, home.days) : firstSteps(visit, home)}
        ${usage(home)}`
      return { title: 'Home', content }
    },
  }
}

/** What needs attention, each with a link to where it is fixed. */
function problems(visit: Visit, { domains, endpoints, usage, plan }: Home): Content {
  const items: { text: Content; page: string; link: string }[] = []
  const { state } = visit.frame.organisation ?? {}
  if (state === 'paused') {
    const text = 'Sending is paused. Find the messages that recipients complained about.'
    items.push({ text, page: 'messages?status=complained', link: 'Show complaints' })
  }
  for (const { name, status, wrongRecords, wrongSince } of domains ?? []) {
    const since = wrongSince && html` since ${time(wrongSince)}`
    const text = html`The domain ${name} is ${status}${wrongRecords.length > 0 && html`: ${wrongRecords.join(', ')}`}${since}.`
    items.push({ text, page: 'domains', link: 'Show its records' })
  }
  for (const { url, failingSince, disabledAt, lastError } of endpoints ?? []) {
    const text = disabledAt
      ? html`The webhook endpoint ${url} is disabled since ${time(disabledAt)}.`
      : html`The webhook endpoint ${url} fails since ${time(failingSince)}: ${lastError}.`
    items.push({ text, page: 'webhooks', link: 'Show the endpoint' })
  }
  if (usage.emailsUsed >= plan.emailsIncluded * ALLOWANCE_WARNING) {
    const text = `${count(usage.emailsUsed)} of ${count(plan.emailsIncluded)} emails of the plan are used.`
    items.push({ text, page: 'usage', link: 'Show usage' })
  }
  if (usage.smsUsed >= plan.smsIncluded && usage.smsUsed > 0 && usage.smsCredits < LOW_CREDITS) {
    const text = `The SMS of the plan are used, and ${count(usage.smsCredits)} credits are left.`
    items.push({ text, page: 'sms', link: 'Show the ledger' })
  }
  if (items.length === 0) return null
  return html`<section class="problems" aria-label="Needs attention">
    <h2>Needs attention</h2>
    <ul>${items.map(
      ({ text, page, link }) => html`<li>${text} <a href=${pathOf(visit, page)}>${link}</a></li>`,
    )}</ul>
  </section>`
}

function outcomes(visit: Visit, days: readonly Day[]): Content {
  const sum = (key: Exclude<keyof Day, 'day'>) => days.reduce((total, day) => total + day[key], 0)
  const emails = sum('emailsSent')
  const parts = ({ delivered, bounced, failed, accepted }: Day) => [
    { name: 'delivered', value: delivered, tone: 'good' as const },
    { name: 'bounced', value: bounced, tone: 'bad' as const },
    { name: 'failed', value: failed, tone: 'warn' as const },
    {
      name: 'sent or waiting',
      value: Math.max(0, accepted - delivered - bounced - failed),
      tone: 'plain' as const,
    },
  ]
  return html`<section>
    <h2>Messages of the last 30 days</h2>
    <p class="hint">Messages of test keys are not counted.</p>
    ${bars({ label: 'Messages of each day by outcome', days: days.map((day) => ({ day: day.day, parts: parts(day) })) })}
    <dl class="figures">
      ${figure('Accepted', count(sum('accepted')))}
      ${figure('Delivered', count(sum('delivered')), pathOf(visit, 'messages?status=delivered'))}
      ${figure('Bounce rate', rate(sum('emailsBounced'), emails), pathOf(visit, 'messages?status=bounced'))}
      ${figure('Complaint rate', rate(sum('complained'), emails), pathOf(visit, 'messages?status=complained'))}
    </dl>
    ${complaintRates(days)}
  </section>`
}

/** The complaint rate of each day beside the limit at which the service pauses an organisation. */
function complaintRates(days: readonly Day[]): Content {
  if (!days.some(({ complained }) => complained > 0)) return null
  return html`<h2>Complaint rate by day</h2>
    ${bars({
      label: 'Complaints as a share of emails, by day',
      days: days.map(({ day, complained, emailsSent }) => ({
        day,
        parts: [
          {
            name: 'complaint rate, %',
            value: emailsSent > 0 ? (100 * complained) / emailsSent : 0,
            tone: 'bad' as const,
          },
        ],
      })),
      line: {
        value: 100 * COMPLAINT_LIMIT,
        label: '0.1 %: from three complaints on, the service pauses sending',
      },
    })}`
}

function usage({ usage, plan }: Home): Content {
  return html`<section>
    <h2>Usage until ${time(usage.periodEnd)}, plan ${plan.name}</h2>
    <dl class="figures">
      ${figure('Emails', `${count(usage.emailsUsed)} of ${count(plan.emailsIncluded)}`)}
      ${figure('SMS segments', `${count(usage.smsUsed)} of ${count(plan.smsIncluded)}`)}
      ${figure('SMS credits', count(usage.smsCredits))}
    </dl>
  </section>`
}

function figure(label: string, value: string, href: string | null = null): Content {
  return html`<div><dt>${label}</dt><dd>${href ? html`<a href=${href}>${value}</a>` : value}</dd></div>`
}

/** A share in percent: 0.08 %. */
function rate(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(2)} %`
}

/** What to do before the first message. */
function firstSteps(visit: Visit, { hasKey, hasDomain }: Home): Content {
  const origin = visit.publicUrl
  return html`<section>
    <h2>Send the first message</h2>
    <ol>
      <li>${hasDomain ? 'A domain is verified.' : html`<a href=${pathOf(visit, 'domains')}>Add a domain</a> and publish its DNS records.`}</li>
      <li>${hasKey ? html`Use one of the <a href=${pathOf(visit, 'keys')}>API keys</a>.` : html`<a href=${pathOf(visit, 'keys')}>Create an API key</a>.`}</li>
      <li>Send:
        <pre data-copy>${`curl -s ${origin}/v1/emails \\
  -H 'Authorization: Bearer YOUR_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Demo <hello@YOUR_DOMAIN>","to":"delivered@sandbox.postgram.test","subject":"Hello","text":"My first message."}'`}</pre>
      </li>
    </ol>
  </section>`
}
