import t from 'tap'
import { connect } from '../../src/db/client.ts'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { send } from '../fixtures/messages.ts'
import { createOrganisation } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
// Accepts messages and attempts none.
const { base } = await startTestService(url, { roles: ['api'] })

/** Registers a process as a worker that does nothing. */
async function pretendWorker() {
  const session = connect(url, { max: 1 })
  await session`select api.record_heartbeat('pretended-worker', '{worker}', 'here', 1, '1.2.3', now())`
  return async () => {
    await session`select api.deregister('pretended-worker')`
    await session.end()
  }
}

/** Returns a queued message of a new organisation. */
async function queued() {
  const organisation = await createOrganisation(sql)
  return { organisation: organisation.id, id: await send(base, organisation) }
}

const why = async (tx: Tx, id: string) => {
  const [row] = await tx<{ why: string }[]>`select ops.why(${id})`
  return row?.why
}
const messageOf = async (tx: Tx, id: string) => {
  const [row] = await tx`select * from ops.messages where id = ${id}`
  return { ...row }
}
const update = (tx: Tx, id: string, changes: string) =>
  tx.unsafe(`update app.messages set ${changes} where id = core.decode_id('em', $1)`, [id])
const updateJob = (tx: Tx, id: string, changes: string) =>
  tx.unsafe(
    `update graphile_worker._private_jobs set ${changes}
     where payload ->> 'id' = core.decode_id('em', $1)::text`,
    [id],
  )
const jobsOf = (tx: Tx, id: string) => tx`
  select attempts, priority, run_at <= now() as is_due, is_available
  from graphile_worker._private_jobs where payload ->> 'id' = core.decode_id('em', ${id})::text`
const dropJob = (tx: Tx, id: string) =>
  tx`delete from graphile_worker._private_jobs where payload ->> 'id' = core.decode_id('em', ${id})::text`

t.test('ops.why: without a worker, a message waits for one', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    const hint = 'start one with the command "start" or "start --only worker".'
    t.equal(await why(tx, id), `The message waits because no worker is running; ${hint}`)
    await tx`
      insert into app.processes (version, clock_offset, synchronous_commit, pool_id, roles, host, pid, heartbeat_at)
      values ('1.2.3', '0', 'on', 'gone-worker', '{worker}', 'here', 1, '2031-05-01T10:00:00Z')`
    t.equal(
      await why(tx, id),
      `The message waits because no worker is running (last heartbeat at 2031-05-01T10:00:00.000Z); ${hint}`,
    )
  })
})

t.test('ops.why with a worker', async (t) => {
  const leave = await pretendWorker()

  t.test('ops.why: a queued message waits behind a number of messages', async (t) => {
    const first = await queued()
    await queued()
    const last = await queued()
    await rolledBack(sql, async (tx) => {
      t.match(await why(tx, last.id), /^The message waits behind \d+ messages\.$/)
      const ahead = async (id: string) => Number(/\d+/.exec(String(await why(tx, id)))?.[0])
      t.equal((await ahead(last.id)) - (await ahead(first.id)), 2)
    })
  })

  t.test('ops.why: a paused organisation is named with the reason and the fix', async (t) => {
    const { organisation, id } = await queued()
    await rolledBack(sql, async (tx) => {
      await tx`select set_config('postgram.now', '2031-05-01T10:00:00Z', true)`
      await tx`select ops.pause(${organisation}, 'a look')`
      t.equal(
        await why(tx, id),
        `The message waits because its organisation ${organisation} has been paused since 2031-05-01T10:00:00.000Z: a look; select ops.resume(…) sends it.`,
      )
      await tx`select ops.suspend(${organisation}, 'spam')`
      t.match(await why(tx, id), /has been suspended since .*: spam; a worker will reject it\.$/)
    })
  })

  t.test('ops.why: a message held during a pause is released within a minute', async (t) => {
    const { organisation, id } = await queued()
    await rolledBack(sql, async (tx) => {
      await tx`select ops.pause(${organisation}, 'a look')`
      t.same(await tx`select * from api.start_emails(array[core.decode_id('em', ${id})])`, [])
      await tx`update app.organisations set paused_at = null, pause_reason = null where id = core.decode_id('org', ${organisation})`
      t.match(await why(tx, id), /^The message was held while its organisation was paused; /)
    })
  })

  t.test(
    'ops.why: a deferred message has the time of the next attempt and the reason',
    async (t) => {
      const { id } = await queued()
      await rolledBack(sql, async (tx) => {
        await tx`select api.start_emails(array[core.decode_id('em', ${id})])`
        await dropJob(tx, id)
        const results = JSON.stringify([
          { outcome: 'deferred', code: '421', text: 'Come back later.' },
        ])
        await tx`
        select api.finish_messages(jsonb_set(${results}::text::jsonb, '{0,id}', to_jsonb(core.decode_id('em', ${id}))))`
        t.match(
          await why(tx, id),
          /^The message waits for attempt 2 at \d{4}-[\d:.T-]+Z because the last attempt was deferred: Come back later\.$/,
        )
      })
    },
  )

  t.test(
    'ops.why: a failing provider is named with its error and since when it fails',
    async (t) => {
      const { id } = await queued()
      await rolledBack(sql, async (tx) => {
        await update(tx, id, "provider = 'another', attempts = 3")
        await tx`insert into app.provider_health (provider, failing_since, last_error) values ('another', '2031-05-01T10:00:00Z', 'is down')`
        const trouble =
          'the provider another has accepted no messages since 2031-05-01T10:00:00.000Z: is down'
        t.match(
          await why(tx, id),
          new RegExp(`^The message waits behind \\d+ messages; ${trouble}\\.$`),
        )
        await updateJob(tx, id, "run_at = '2032-01-01T00:00:00Z'")
        t.match(
          await why(tx, id),
          new RegExp(`^The message waits for attempt 4 at 20[\\d:.T-]+Z because ${trouble}\\.$`),
        )
        await dropJob(tx, id)
        await tx`
        insert into app.due_messages (message_id, organisation_id, priority, due_at)
        values (core.decode_id('em', ${id}), gen_random_uuid(), 0, '2032-01-01T00:00:00Z')`
        t.equal(
          await why(tx, id),
          `The message waits for attempt 4 at 2032-01-01T00:00:00.000Z because ${trouble}.`,
        )
      })
    },
  )

  t.test('ops.why: a running attempt has its start time', async (t) => {
    const { id } = await queued()
    await rolledBack(sql, async (tx) => {
      await tx`select api.start_emails(array[core.decode_id('em', ${id})])`
      await updateJob(
        tx,
        id,
        "locked_at = '2031-05-01T10:00:00Z', locked_by = 'worker', attempts = 25",
      )
      t.equal(
        await why(tx, id),
        'Attempt 1 of the message has been running since 2031-05-01T10:00:00.000Z.',
      )
    })
  })

  t.test(
    'ops.why: a job that failed permanently has its error, also with a later run_at',
    async (t) => {
      const { id } = await queued()
      await rolledBack(sql, async (tx) => {
        for (const runAt of ['2020-01-01', '2040-01-01']) {
          await updateJob(
            tx,
            id,
            `attempts = max_attempts, last_error = 'a bug', run_at = '${runAt}'`,
          )
          t.equal(
            await why(tx, id),
            'The job of the message failed permanently after 25 attempts (a bug); select ops.retry_message(…) sends the message.',
          )
        }
      })
    },
  )

  t.test('ops.why: a message without a job is reported as a bug', async (t) => {
    const { id } = await queued()
    await rolledBack(sql, async (tx) => {
      await dropJob(tx, id)
      t.match(
        await why(tx, id),
        /^The message is queued but has no job; this is a bug, please report it. /,
      )
    })
  })

  t.test('ops.why: a message that does not wait has its status', async (t) => {
    const { id } = await queued()
    await rolledBack(sql, async (tx) => {
      await update(tx, id, "status = 'delivered'")
      t.equal(await why(tx, id), 'The message does not wait: its status is delivered.')
      await update(tx, id, "status = 'bounced', error_message = 'No such mailbox.'")
      t.equal(
        await why(tx, id),
        'The message does not wait: its status is bounced (No such mailbox).',
      )
      await update(tx, id, "mode = 'test'")
      t.match(await why(tx, id), /^The message does not wait: it was created with a test key /)
    })
  })

  t.test('ops.why: the result is one sentence', async (t) => {
    const { id } = await queued()
    await rolledBack(sql, async (tx) => {
      t.match(await why(tx, id), /^The message [^\n]+\.$/)
    })
  })

  t.teardown(leave)
})

t.test('ops.retry_message: a message that waits for its next attempt is due now', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    await updateJob(tx, id, "run_at = now() + interval '1 hour', attempts = 7")
    await tx`select ops.retry_message(${id})`
    t.match([...(await jobsOf(tx, id))], [{ attempts: 0, isDue: true, isAvailable: true }])
  })
})

t.test('ops.retry_message: a message in app.due_messages gets a job', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    await dropJob(tx, id)
    await tx`
      insert into app.due_messages (message_id, organisation_id, priority, due_at)
      values (core.decode_id('em', ${id}), gen_random_uuid(), 0, '2032-01-01')`
    await tx`select ops.retry_message(${id})`
    t.match([...(await jobsOf(tx, id))], [{ attempts: 0, priority: 0, isDue: true }])
    const due =
      await tx`select from app.due_messages where message_id = core.decode_id('em', ${id})`
    t.same(due, [])
  })
})

t.test('ops.retry_message: a job that failed permanently gets all attempts again', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    await updateJob(tx, id, 'attempts = max_attempts')
    await tx`select ops.retry_message(${id})`
    t.match([...(await jobsOf(tx, id))], [{ attempts: 0, isDue: true, isAvailable: true }])
  })
})

t.test('ops.retry_message: a second retry adds no job', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    await tx`select ops.retry_message(${id})`
    await tx`select ops.retry_message(${id})`
    t.equal((await jobsOf(tx, id)).length, 1)
  })
})

t.test('ops.retry_message: the job of a running attempt is unchanged', async (t) => {
  const { id } = await queued()
  await rolledBack(sql, async (tx) => {
    await updateJob(tx, id, "locked_at = now(), locked_by = 'worker', attempts = 2")
    await tx`select ops.retry_message(${id})`
    t.match([...(await jobsOf(tx, id))], [{ attempts: 2, isAvailable: false }])
  })
})

t.test(
  'ops.retry_message: an email that failed before it was sent is queued again and keeps its timeline',
  async (t) => {
    const { organisation, id } = await queued()
    await rolledBack(sql, async (tx) => {
      await tx`select api.start_emails(array[core.decode_id('em', ${id})])`
      await dropJob(tx, id)
      await tx`
      select api.finish_messages(jsonb_build_array(jsonb_build_object(
        'id', core.decode_id('em', ${id}), 'outcome', 'failed', 'provider', 'sandbox', 'text', 'No.')))`
      const waiting = async () => {
        const [row] =
          await tx`select messages_waiting, emails_used from ops.organisations where id = ${organisation}`
        return { ...row }
      }
      t.match(await messageOf(tx, id), { status: 'failed', errorCode: 'provider_rejected' })
      t.same(await waiting(), { messagesWaiting: '0', emailsUsed: 1 })
      await tx`select ops.retry_message(${id})`
      t.match(await messageOf(tx, id), { status: 'queued', errorCode: null, errorMessage: null })
      t.same(await waiting(), { messagesWaiting: '1', emailsUsed: 1 }, 'is paid for once')
      t.equal((await jobsOf(tx, id)).length, 1)
      const events = await tx`
      select type, detail from app.events where message_id = core.decode_id('em', ${id}) order by id`
      t.match(
        [...events],
        [{ type: 'failed' }, { type: 'queued', detail: { text: 'retried by the operator' } }],
      )
    })
  },
)

for (const [status, sentAt] of [
  ['sent', 'now()'],
  ['delivered', 'now()'],
  ['rejected', 'null'],
  ['failed', 'now()'],
]) {
  t.test(
    `ops.retry_message: refuses a message that is ${status}${status === 'failed' ? ' after it was sent' : ''}`,
    async (t) => {
      const { id } = await queued()
      await rolledBack(sql, async (tx) => {
        await update(tx, id, `status = '${status}', sent_at = ${sentAt}`)
        const { code, message } = await raisedBy(
          tx,
          (inner) => inner`select ops.retry_message(${id})`,
        )
        t.equal(code, 'P0001')
        t.equal(
          message,
          `the message is ${status}; only a waiting message, or an email that failed before it was sent, can be retried`,
        )
      })
    },
  )
}

t.test('ops.resume: releases the held messages and returns their number', async (t) => {
  const { organisation, id } = await queued()
  const other = await queued()
  await rolledBack(sql, async (tx) => {
    await tx`select ops.pause(${organisation}, 'a look')`
    await tx`select ops.pause(${other.organisation}, 'a look')`
    await tx`select api.start_emails(array[core.decode_id('em', ${id}), core.decode_id('em', ${other.id})])`
    await dropJob(tx, id)
    const [row] = await tx`select ops.resume(${organisation}) as released`
    t.same(row, { released: 1 })
    t.match([...(await jobsOf(tx, id))], [{ isDue: true, isAvailable: true }])
    const held = await tx`select core.encode_id('em', message_id) as id from app.due_messages`
    t.same([...held], [{ id: other.id }], "and no other organisation's")
    const [suspension] = await tx`select ops.suspend(${other.organisation}, 'spam') as released`
    t.same(suspension, { released: 1 })
  })
})

t.test('ops.stuck_messages: lists a message that waits for more than a minute', async (t) => {
  const { organisation, id } = await queued()
  await rolledBack(sql, async (tx) => {
    const stuck = () => tx`select * from ops.stuck_messages where organisation = ${organisation}`
    t.same(await stuck(), [])
    await update(tx, id, "created_at = now() - interval '61 seconds'")
    t.match(
      [...(await stuck())],
      [{ id, organisation, to: 'delivered@sandbox.postgram.test', attempts: 0 }],
    )
    const [check] = await tx`select ok from ops.checks where name = 'stuck messages'`
    t.same(check, { ok: false })
    await update(tx, id, "mode = 'test'")
    t.same(await stuck(), [], 'unless it is of a test key')
    await update(tx, id, "mode = 'live', status = 'sent'")
    t.same(await stuck(), [], 'or on its way')
  })
})

t.test(
  'ops.checks: a stuck message is a problem unless it is deferred, then a warning',
  async (t) => {
    const { organisation, id } = await queued()
    await rolledBack(sql, async (tx) => {
      const severity = async () => {
        const [check] = await tx`
        select ok, severity from ops.checks where name = 'stuck messages'`
        t.equal(check?.ok, false)
        return check?.severity
      }
      await update(tx, id, "created_at = now() - interval '10 minutes'")
      await updateJob(tx, id, "run_at = now() - interval '2 minutes'")
      t.equal(await severity(), 'warning', 'due for less than 5 minutes')
      await updateJob(tx, id, "run_at = now() - interval '6 minutes'")
      t.equal(await severity(), 'problem', 'due for more than 5 minutes')
      await updateJob(tx, id, "run_at = now() + interval '1 hour'")
      t.equal(await severity(), 'warning', 'waits for its next attempt')
      await updateJob(tx, id, "run_at = now() - interval '6 minutes', priority = 10")
      t.equal(await severity(), 'warning', 'waits behind a thousand of its own organisation')
      await dropJob(tx, id)
      t.equal(await severity(), 'problem', 'has no job')
      const due = (at: string) =>
        tx.unsafe(
          `insert into app.due_messages (message_id, organisation_id, priority, due_at)
         select m.id, m.organisation_id, 0, ${at} from app.messages m where m.id = core.decode_id('em', $1)
         on conflict (message_id) do update set due_at = excluded.due_at`,
          [id],
        )
      await due("now() + interval '3 hours'")
      t.equal(await severity(), 'warning', 'waits for its next attempt without a job')
      await due("now() - interval '6 minutes'")
      t.equal(await severity(), 'problem', 'was not released')
      await tx`select ops.pause(${organisation}, 'a look')`
      t.equal(await severity(), 'warning', 'is of a paused organisation')
    })
  },
)

t.test('ops.messages: lists messages as the API shows them, newest first', async (t) => {
  const organisation = await createOrganisation(sql)
  const older = await send(base, organisation, { subject: 'Older', tags: ['a', 'b'] })
  const newer = await send(base, organisation, { subject: 'Newer', class: 'marketing' })
  const rows = await sql`select * from ops.messages where organisation = ${organisation.id}`
  t.match(
    [...rows],
    [
      { id: newer, subject: 'Newer', class: 'marketing', tags: [] },
      {
        id: older,
        status: 'queued',
        mode: 'live',
        class: 'transactional',
        from: `hello@${organisation.domain}`,
        to: 'delivered@sandbox.postgram.test',
        subject: 'Older',
        tags: ['a', 'b'],
        attempts: 0,
        provider: null,
        errorCode: null,
        createdAt: Date,
        sentAt: null,
        deliveredAt: null,
      },
    ],
  )
})

t.test('ops.queue: counts jobs by state', async (t) => {
  const ids = []
  for (let n = 0; n < 5; n += 1) ids.push((await queued()).id)
  const [running = '', later = '', failed = '', outside = ''] = ids
  await rolledBack(sql, async (tx) => {
    const queue = async () => {
      const rows = await tx`
        select task, waiting::integer, running::integer, scheduled::integer, failed::integer from ops.queue`
      return Object.fromEntries(rows.map(({ task, ...counts }) => [task, counts]))
    }
    const { send_email: before } = await queue()
    await updateJob(tx, running, "locked_at = now(), locked_by = 'worker'")
    await updateJob(tx, later, "run_at = now() + interval '1 hour'")
    await updateJob(tx, failed, "attempts = max_attempts, last_error = 'a bug'")
    await dropJob(tx, outside)
    await tx`
      insert into app.due_messages (message_id, organisation_id, priority, due_at)
      values (core.decode_id('em', ${outside}), gen_random_uuid(), 0, '2020-01-01')`
    t.match(await queue(), {
      send_email: { waiting: before.waiting - 4, running: 1, scheduled: 1, failed: 1 },
      due_messages: { waiting: 0, running: 0, scheduled: 1, failed: 0 },
    })
    const [row] =
      await tx`select waiting_since is not null as is_waiting, last_error from ops.queue where task = 'send_email'`
    t.same(row, { isWaiting: true, lastError: 'a bug' })
    const [check] = await tx`select ok, hint from ops.checks where name = 'failed jobs'`
    t.match(check, { ok: false, hint: /ops\.queue/ })
  })
})

t.test('core.retry_messages: scans the queue once, however many messages it retries', async (t) => {
  const messages = [await queued(), await queued(), await queued()].map(({ id }) => id)
  await rolledBack(sql, async (tx) => {
    const scans = async () => {
      const [row] = await tx`
        select seq_scan from pg_stat_xact_all_tables where relid = 'graphile_worker._private_jobs'::regclass`
      return Number(row?.seqScan)
    }
    const scansFor = async (ids: string[]) => {
      const before = await scans()
      const problems = await tx`
        select * from core.retry_messages(array(select core.decode_id('em', id) from unnest(${ids}::text[]) id))`
      t.same(problems, [])
      return (await scans()) - before
    }
    const one = await scansFor(messages.slice(0, 1))
    t.ok(one > 0)
    t.equal(await scansFor(messages), one)
    for (const id of messages) t.match(await jobsOf(tx, id), [{ attempts: 0, isDue: true }])
  })
})
