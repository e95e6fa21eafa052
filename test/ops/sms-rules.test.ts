import t from 'tap'
import { createDatabase, raisedBy, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const { id: org } = await createOrganisation(sql)
const { id: other } = await createOrganisation(sql)

const PHONE = '+27821234567'
const at = (tx: Tx, time: string) => tx`select set_config('postgram.now', ${time}, true)`

const consentsOf = async (tx: Tx, organisation = org) => [
  ...(await tx`
    select phone, source, consented_at, opted_out_at, opted_out_by
    from ops.consents where organisation = ${organisation} order by phone`),
]

t.test(
  'ops.record_consent: consent is recorded, renewed, withdrawn and recorded again',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      await at(tx, '2026-03-01T10:00:00Z')
      await tx`select ops.record_consent(${org}, ${PHONE}, 'the form')`
      const agreed = { phone: PHONE, optedOutAt: null, optedOutBy: null }
      const first = new Date('2026-03-01T10:00:00Z')
      t.match(await consentsOf(tx), [{ ...agreed, source: 'the form', consentedAt: first }])
      t.same(await consentsOf(tx, other), [])

      await at(tx, '2026-03-02T10:00:00Z')
      await tx`select ops.record_consent(${org}, ${PHONE}, 'by telephone')`
      const second = new Date('2026-03-02T10:00:00Z')
      t.match(await consentsOf(tx), [{ ...agreed, source: 'by telephone', consentedAt: second }])

      await at(tx, '2026-03-03T10:00:00Z')
      await tx`select ops.withdraw_consent(${org}, ${PHONE})`
      await at(tx, '2026-03-04T10:00:00Z')
      await tx`select ops.withdraw_consent(${org}, ${PHONE})`
      const [{ user }] = (await tx`select session_user::text as user`) as unknown as [
        { user: string },
      ]
      t.match(await consentsOf(tx), [
        {
          source: 'by telephone',
          consentedAt: second,
          optedOutAt: new Date('2026-03-03T10:00:00Z'),
          optedOutBy: `operator ${user}`,
        },
      ])

      await at(tx, '2026-03-05T10:00:00Z')
      await tx`select ops.record_consent(${org}, ${PHONE}, 'the form again')`
      t.match(await consentsOf(tx), [{ ...agreed, source: 'the form again' }])
    })
  },
)

t.test('ops.withdraw_consent: works without consent and keeps an opt-out by keyword', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.withdraw_consent(${org}, ${PHONE})`
    t.match(await consentsOf(tx), [{ phone: PHONE, source: null, consentedAt: null }])
    await tx`update app.consents set opted_out_by = 'STOP', opted_out_at = '2026-01-01T00:00:00Z'`
    await tx`select ops.withdraw_consent(${org}, ${PHONE})`
    t.match(await consentsOf(tx), [
      { optedOutBy: 'STOP', optedOutAt: new Date('2026-01-01T00:00:00Z') },
    ])
  })
})

t.test(
  'ops.approve_sender: a name can have several organisations, a number only one',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      for (const organisation of [org, other])
        await tx`select ops.approve_sender(${organisation}, 'Acme')`
      await tx`select ops.approve_sender(${org}, ${PHONE})`
      await tx`select ops.approve_sender(${org}, ${PHONE})`
      await tx`select ops.approve_sender(${org}, 'A 1')`
      t.match(
        await tx`select organisation, sender from ops.senders order by sender, organisation = ${other}`,
        [
          { organisation: org, sender: PHONE },
          { organisation: org, sender: 'A 1' },
          { organisation: org, sender: 'Acme' },
          { organisation: other, sender: 'Acme' },
        ],
      )
      const held = await raisedBy(
        tx,
        (inner) => inner`select ops.approve_sender(${other}, ${PHONE})`,
      )
      t.equal(held.message, `another organisation uses ${PHONE}`)
      await tx`select ops.revoke_sender(${org}, ${PHONE})`
      await tx`select ops.approve_sender(${other}, ${PHONE})`
    })
  },
)

t.test('ops.set_shared_sender: refuses a number of an organisation', async (t) => {
  await rolledBack(sql, async (tx) => {
    t.match(await tx`select shared_sender from ops.sms_settings`, [{ sharedSender: 'Postgram' }])
    await tx`select ops.set_shared_sender(${PHONE})`
    t.match(await tx`select shared_sender from ops.sms_settings`, [{ sharedSender: PHONE }])
    const shared = await raisedBy(tx, (inner) => inner`select ops.approve_sender(${org}, ${PHONE})`)
    t.equal(shared.message, `${PHONE} is the shared sender, which every organisation can use`)
    await tx`select ops.set_shared_sender('Acme')`
    await tx`select ops.approve_sender(${org}, ${PHONE})`
    await tx`select ops.approve_sender(${org}, 'Acme')`
    const held = await raisedBy(tx, (inner) => inner`select ops.set_shared_sender(${PHONE})`)
    t.equal(held.message, `the organisation ${org} uses ${PHONE}; revoke it first`)
  })
})

t.test('ops.block_number and ops.unblock_number change the registry', async (t) => {
  await rolledBack(sql, async (tx) => {
    await tx`select ops.block_number(${PHONE}, 'registered in June')`
    await tx`select ops.block_number(${PHONE}, 'again')`
    t.match(await tx`select * from ops.blocked_numbers`, [
      { phone: PHONE, note: 'registered in June', createdAt: Date },
    ])
    await tx`select ops.unblock_number(${PHONE})`
    t.same([...(await tx`select * from ops.blocked_numbers`)], [])
  })
})

t.test('ops.add_holiday: refuses an invalid day', async (t) => {
  await rolledBack(sql, async (tx) => {
    for (const day of ['infinity', '-infinity']) {
      const add = (inner: Tx) => inner.unsafe(`select ops.add_holiday('${day}', 'Never')`)
      t.equal(
        (await raisedBy(tx, add)).message,
        'the day must be from 2000-01-01 to 2999-12-31, such as 2029-05-30',
      )
    }
  })
})

t.test('ops.apply_staged_numbers', async (t) => {
  /** Inserts numbers as \copy of psql does, with the rights of an operator. */
  const stage = async (tx: Tx, file: string) => {
    await tx`set local role postgram_operator`
    const copy = await tx`copy ops.staged_numbers from stdin csv`.writable()
    await new Promise<void>((resolve, reject) => {
      copy.on('error', reject).on('finish', resolve).end(file)
    })
  }
  const apply = async (tx: Tx, args: string) => {
    const [row] = await tx.unsafe(`select ops.apply_staged_numbers(${args}) as added`)
    return row?.added
  }
  const blocked = async (tx: Tx) =>
    (await tx<{ phone: string }[]>`select phone from ops.blocked_numbers order by phone`).map(
      ({ phone }) => phone,
    )
  const staged = async (tx: Tx) => (await tx`select from ops.staged_numbers`).length

  await t.test('adds the numbers to the registry', async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`select ops.block_number('+27820000009', 'by hand')`
      await tx`select ops.block_number('+27820000001', 'by hand')`
      await stage(tx, '+27820000001\r\n"+27820000002"\r\n +27820000003 \r\n\r\n+27820000002\r\n')
      t.equal(await apply(tx, "note := 'June'"), 2, 'new ones, each once')
      t.same(await blocked(tx), ['+27820000001', '+27820000002', '+27820000003', '+27820000009'])
      t.match(await tx`select note from ops.blocked_numbers order by phone`, [
        { note: 'by hand' },
        { note: 'June' },
        { note: 'June' },
        { note: 'by hand' },
      ])
      t.equal(await staged(tx), 0)
      const none = await raisedBy(tx, (inner) => inner`select ops.apply_staged_numbers()`)
      t.equal(none.message, 'ops.staged_numbers is empty')
    })
  })

  await t.test('replaces the registry with replaces => true', async (t) => {
    await rolledBack(sql, async (tx) => {
      await tx`select ops.block_number('+27820000001', 'by hand')`
      await tx`select ops.block_number('+27820000009', 'by hand')`
      await stage(tx, '+27820000001\n+27820000002\n')
      t.equal(await apply(tx, 'true'), 1)
      t.same(await blocked(tx), ['+27820000001', '+27820000002'])
      const empty = await raisedBy(tx, (inner) => inner`select ops.apply_staged_numbers(true)`)
      t.equal(empty.message, 'ops.staged_numbers is empty')
      t.equal((await blocked(tx)).length, 2, 'an empty one unblocks nobody')
    })
  })

  await t.test('a wrong line blocks nothing and keeps the staged lines', async (t) => {
    await rolledBack(sql, async (tx) => {
      await stage(tx, "phone\n+27820000001\n0820000002\nO'Brien\n+27820000003\n")
      for (const replaces of ['false', 'true']) {
        const { message, hint } = await raisedBy(tx, (inner) =>
          inner.unsafe(`select ops.apply_staged_numbers(${replaces})`),
        )
        t.equal(
          message,
          "'phone' is not a number in E.164, such as +27821234567 (the first of 3 wrong lines); no number was blocked",
        )
        t.match(hint, /^delete from ops\.staged_numbers; /)
      }
      t.same(await blocked(tx), [])
      t.equal(await staged(tx), 5)
      await tx`delete from ops.staged_numbers`
      await stage(tx, '+27820000001\n')
      t.equal(await apply(tx, ''), 1)
    })
  })

  await t.test('blank lines count as empty', async (t) => {
    await rolledBack(sql, async (tx) => {
      await stage(tx, '\n\n')
      const none = await raisedBy(tx, (inner) => inner`select ops.apply_staged_numbers()`)
      t.equal(none.message, 'ops.staged_numbers is empty')
    })
  })

  await t.test('applies 100,000 numbers in one call', async (t) => {
    await rolledBack(sql, async (tx) => {
      const numbers = Array.from(
        { length: 100_000 },
        (_, place) => `+2782${String(place).padStart(7, '0')}`,
      )
      await stage(tx, `${numbers.join('\n')}\n`)
      t.equal(await apply(tx, ''), 100_000)
    })
  })
})
