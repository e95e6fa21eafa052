import { randomUUID } from 'node:crypto'
import type { AcceptEmail, AcceptSms } from '../../db/api.gen.ts'
import { catalogueJson } from '../../errors.ts'
import { parseEmail } from '../../schemas/email.ts'
import { parseSms } from '../../schemas/sms.ts'
import type { Planned } from './plan.ts'
import type { World } from './world.ts'

/** Accepts messages as the API does, and adds them to those that wait. */
export async function accept(world: World, now: number, messages: Planned[]): Promise<void> {
  for (const channel of ['email', 'sms'] as const) {
    const planned = messages.filter((message) => message.channel === channel)
    if (planned.length === 0) continue
    const call = {
      n: 0,
      organisation_id: world.uuid,
      mode: 'live' as const,
      key: `request:${randomUUID()}`,
      fingerprint: '',
      batch: true,
    }
    const catalogue = catalogueJson('http://127.0.0.1')
    const [response] =
      channel === 'email'
        ? await world.call('accept_emails', {
            calls: [call],
            items: planned.map((message, index) => emailItem(world, message, index)),
            catalogue,
          })
        : await world.call('accept_sms', { calls: [call], items: planned.map(smsItem), catalogue })
    const results: { ok: boolean; data?: { id: string } }[] = JSON.parse(
      response?.body ?? '',
    ).results
    const ids = results.map(({ data }) => data?.id ?? null)
    const rows = await world.sql<{ id: string | null }[]>`
      select core.decode_id(${channel === 'email' ? 'em' : 'sm'}, i) as id
      from unnest(${ids}::text[]) with ordinality u (i, place) order by place`
    for (const [n, { id }] of rows.entries()) {
      const message = planned[n]
      if (id === null || message === undefined) continue
      const scheduled = message.body.scheduledAt
      const from = typeof scheduled === 'string' ? Date.parse(scheduled) : now
      world.waiting.set(id, { planned: message, from })
    }
  }
}

function emailItem(world: World, { body, template }: Planned, index: number): AcceptEmail {
  const templateId = template && world.templates.get(template)
  return { ...valid(parseEmail({ ...body, ...(templateId && { templateId }) })), call: 0, index }
}

const smsItem = ({ body }: Planned, index: number): AcceptSms => ({
  ...valid(parseSms(body)),
  call: 0,
  index,
})

function valid<Value>(parsed: { value: Value } | { fields: unknown }): Value {
  if ('fields' in parsed) throw new Error(JSON.stringify(parsed.fields))
  return parsed.value
}

/** Suppresses the recipients of some emails after they were accepted, so that they are rejected. */
export async function suppressSome({ call, uuid, waiting }: World): Promise<void> {
  for (const { planned } of waiting.values()) {
    if (planned.fate !== 'suppressed') continue
    const email = String(planned.body.to)
    const note = 'Asked by email'
    const entry = { organisation_id: uuid, mode: 'live', fingerprint: email, email, note }
    await call('add_suppression', { ...entry, reason: 'manual' })
  }
}
