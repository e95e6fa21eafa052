import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { html } from '../html.ts'
import type { Page } from '../page.ts'
import { count, status, table, time } from '../parts.ts'
import { nullableTimestamp, timestamp } from './rows.ts'

const nowSchema = v.object({
  checks: v.array(
    v.object({
      name: v.string(),
      ok: v.boolean(),
      severity: v.nullable(v.string()),
      hint: v.nullable(v.string()),
    }),
  ),
  queue: v.array(
    v.object({
      task: v.string(),
      waiting: v.number(),
      running: v.number(),
      scheduled: v.number(),
      failed: v.number(),
      waiting_since: nullableTimestamp,
      last_error: v.nullable(v.string()),
    }),
  ),
  processes: v.array(
    v.object({
      roles: v.array(v.string()),
      host: v.string(),
      pid: v.number(),
      started_at: timestamp,
      heartbeat_at: timestamp,
      is_alive: v.boolean(),
      version: v.nullable(v.string()),
    }),
  ),
  tasks: v.array(
    v.object({
      task: v.string(),
      schedule: v.string(),
      last_run: nullableTimestamp,
      duration_ms: v.nullable(v.number()),
      rows: v.nullable(v.number()),
      error: v.nullable(v.string()),
    }),
  ),
  providers: v.array(
    v.object({
      provider: v.string(),
      failing_since: timestamp,
      last_error: v.nullable(v.string()),
    }),
  ),
  latencies: v.array(
    v.object({
      day: v.string(),
      channel: v.string(),
      stage: v.string(),
      messages: v.number(),
      p50_ms: v.nullable(v.number()),
      p90_ms: v.nullable(v.number()),
      p99_ms: v.nullable(v.number()),
    }),
  ),
})

/** The state of the service: checks with hints, queue, processes, scheduled tasks, providers and latencies. */
export function nowPage(call: Call): Page {
  return {
    path: '/operator',
    async show({ session }) {
      const now = v.parse(nowSchema, await call('dashboard_now', { session }))
      const failing = now.checks.filter(({ ok }) => !ok)
      const content = html`
        <h2>Checks</h2>
        ${table(
          'Checks that fail',
          failing,
          [
            { label: 'Check', cell: ({ name }) => name },
            { label: 'Severity', cell: ({ severity }) => severity },
            { label: 'What to do', cell: ({ hint }) => hint },
          ],
          `All ${now.checks.length} checks are ok.`,
        )}
        <h2>Failing providers</h2>
        ${table(
          'Failing providers',
          now.providers,
          [
            { label: 'Provider', cell: ({ provider }) => provider },
            { label: 'Since', cell: ({ failing_since }) => time(failing_since) },
            { label: 'Last error', cell: ({ last_error }) => last_error },
          ],
          'No provider fails.',
        )}
        <h2>Queue</h2>
        ${table(
          'Queue',
          now.queue,
          [
            { label: 'Task', cell: ({ task }) => task },
            { label: 'Waiting', isNumber: true, cell: ({ waiting }) => count(waiting) },
            { label: 'Running', isNumber: true, cell: ({ running }) => count(running) },
            { label: 'Scheduled', isNumber: true, cell: ({ scheduled }) => count(scheduled) },
            { label: 'Failed', isNumber: true, cell: ({ failed }) => count(failed) },
            { label: 'Waiting since', cell: ({ waiting_since }) => time(waiting_since) },
            { label: 'Last error', cell: ({ last_error }) => last_error },
          ],
          'The queue is empty.',
        )}
        <h2>Latencies of today and yesterday</h2>
        ${table(
          'Latencies',
          now.latencies,
          [
            { label: 'Day (UTC)', cell: ({ day }) => day },
            { label: 'Channel', cell: ({ channel }) => channel },
            { label: 'Until', cell: ({ stage }) => stage },
            { label: 'Messages', isNumber: true, cell: ({ messages }) => count(messages) },
            { label: 'p50 ms', isNumber: true, cell: ({ p50_ms }) => count(p50_ms ?? 0) },
            { label: 'p90 ms', isNumber: true, cell: ({ p90_ms }) => count(p90_ms ?? 0) },
            { label: 'p99 ms', isNumber: true, cell: ({ p99_ms }) => count(p99_ms ?? 0) },
          ],
          'No message was sent since yesterday.',
        )}
        <h2>Processes</h2>
        ${table(
          'Processes',
          now.processes,
          [
            { label: 'Roles', cell: ({ roles }) => roles.join(', ') },
            { label: 'Host', cell: ({ host, pid }) => `${host}, process ${pid}` },
            { label: 'Version', cell: ({ version }) => version },
            { label: 'Started', cell: ({ started_at }) => time(started_at) },
            { label: 'Heartbeat', cell: ({ heartbeat_at }) => time(heartbeat_at) },
            { label: 'State', cell: ({ is_alive }) => status(is_alive ? 'ok' : 'failing') },
          ],
          'No process runs.',
        )}
        <h2>Scheduled tasks</h2>
        ${table(
          'Scheduled tasks',
          now.tasks,
          [
            { label: 'Task', cell: ({ task }) => task },
            { label: 'Schedule', cell: ({ schedule }) => html`<code>${schedule}</code>` },
            { label: 'Last run', cell: ({ last_run }) => time(last_run, 'never') },
            { label: 'ms', isNumber: true, cell: ({ duration_ms }) => count(duration_ms ?? 0) },
            { label: 'Rows', isNumber: true, cell: ({ rows }) => count(rows ?? 0) },
            { label: 'Error', cell: ({ error }) => error },
          ],
          'No clock has started yet.',
        )}`
      return { title: 'Now', content }
    },
  }
}
