import { FAILING_HOURS, FAILING_URL } from './plan.ts'
import { HOUR_MS, type World } from './world.ts'

/** Attempts the deliveries of webhook events that are due. One endpoint has not responded since 30 hours. */
export async function deliver(world: World, now: number): Promise<void> {
  const { call, sql, uuid, random } = world
  const due = await sql<
    { endpointId: string; eventId: string; attempt: number; dueAt: Date; url: string }[]
  >`
    select d.endpoint_id, d.event_id, d.attempts + 1 as attempt, greatest(d.due_at, v.occurred_at) as due_at, p.url
    from app.webhook_endpoints p
    join app.webhook_deliveries d on d.endpoint_id = p.id
    join app.webhook_events v on v.id = d.event_id
    where p.organisation_id = ${uuid} and d.due_at <= core.now()
    order by d.due_at, d.event_id`
  if (due.length === 0) return
  const isFailing = now > world.end - FAILING_HOURS * HOUR_MS
  const results = due.map(({ endpointId, eventId, attempt, dueAt, url }) => ({
    endpoint_id: endpointId,
    event_id: eventId,
    attempt,
    started_at: new Date(dueAt.getTime() + Math.floor(40 + random() * 400)),
    ...(isFailing && url === FAILING_URL
      ? { duration_ms: 10_000, status: null, error: 'no response within 10 s', response: null }
      : { duration_ms: Math.floor(40 + random() * 200), status: 200, error: null, response: 'ok' }),
  }))
  await call('finish_deliveries', { results })
}
