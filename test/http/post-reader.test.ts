import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { Refusal } from '../../src/errors.ts'
import { type PostKind, readPostBody } from '../../src/http/body/post-body.ts'
import { createPostReader } from '../../src/http/body/post-reader.ts'
import { anyCharacter } from '../fixtures/strings.ts'

const options = {
  publicUrl: 'https://postgram.test',
  hasSandboxMessages: true,
  hasSandboxSms: true,
}
const email = { from: 'a@acme.example', to: 'b@c.example', subject: 'Hello', text: 'Hi' }
const sms = { to: '+447700900001', body: 'Hi', class: 'transactional' }

let calls = 0
const posted = <Kind extends PostKind>(kind: Kind, body: unknown) => {
  calls += 1
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { kind, bytes: Buffer.from(text), methodAndPath: 'POST /v1', call: calls }
}
const outcomeOf = (reading: Promise<unknown>) =>
  reading.catch((error) => {
    if (!(error instanceof Refusal)) throw error
    return { code: error.code, fields: error.fields }
  })

/** A batch that is slow to validate: 150 problems in each item. */
const bad = Array(50).fill('a')
const hardBatch = (items: number) => ({
  emails: Array(items).fill({ from: 'a', to: bad, cc: bad, bcc: bad }),
})

function aReader(t: Test) {
  const reader = createPostReader(options)
  t.teardown(reader.close)
  return reader
}

t.test('a large body is parsed in the thread and does not block the event loop', async (t) => {
  const reader = aReader(t)
  let iterations = 0
  let isReading = true
  const iterate = () => {
    iterations += 1
    if (isReading) setImmediate(iterate)
  }
  const names = Array(50).fill(`${'"" '.repeat(300)}x <a@b.co>`)
  for (const body of [
    posted('email', { ...email, to: names, cc: names, bcc: names }),
    posted('email batch', hardBatch(200)),
  ]) {
    isReading = true
    iterations = 0
    iterate()
    const { value } = await reader.read(body, 'one')
    isReading = false
    t.equal(value.count, body.kind === 'email' ? 1 : 200)
    t.ok(iterations > 2, `${iterations} iterations`)
  }
})

t.test('a small batch does not wait for the largest of another organisation', async (t) => {
  const reader = aReader(t)
  const order: string[] = []
  const read = (owner: string, items: number) =>
    reader.read(posted('email batch', hardBatch(items)), owner).then(() => order.push(owner))
  await read('warm-up', 1)
  await Promise.all([read('large', 500), read('small', 1)])
  t.strictSame(order, ['warm-up', 'small', 'large'])
})

t.test('bodies are parsed round-robin by organisation, in order within one', async (t) => {
  const reader = aReader(t)
  const order: string[] = []
  const read = (name: string) =>
    reader
      .read(posted('email batch', { emails: [email] }), name.slice(0, 1))
      .then(() => order.push(name))
  await Promise.all(['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map(read))
  t.strictSame(order, ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
})

t.test('only one body of more than 1 MB is in the thread at a time', async (t) => {
  const reader = aReader(t)
  const large = (items: number) => {
    const emails = Array(items).fill({ ...email, html: 'x'.repeat(1_100_000 / items) })
    return posted('email batch', { emails })
  }
  const order: string[] = []
  await Promise.all([
    // It takes longer than the next, which would finish first if both were in the thread.
    reader.read(large(1000), 'a').then(() => order.push('a')),
    reader.read(large(1), 'b').then(() => order.push('b')),
  ])
  t.strictSame(order, ['a', 'b'])
})

t.test(
  'a thread that exits fails its bodies, and the next body starts another thread',
  async (t) => {
    const reader = aReader(t)
    const started = once(process, 'worker') as Promise<[Worker]>
    const first = reader.read(posted('email batch', hardBatch(1000)), 'one')
    const second = reader.read(posted('email batch', hardBatch(1)), 'one')
    const [worker] = await started
    await once(worker, 'online')
    const failed = t.rejects(first, /thread that parses request bodies has exited/)
    await worker.terminate()
    await failed
    t.equal((await second).value.count, 1, 'the next thread parses the waiting body')
  },
)

t.test('a body that exceeds the memory of the thread fails alone', async (t) => {
  const reader = createPostReader(options, { maxOldGenerationSizeMb: 48 })
  t.teardown(reader.close)
  const emails = Array(1000).fill({ ...email, variables: Object.fromEntries(bad.entries()) })
  const huge = { emails: emails.map((each) => ({ ...each, html: 'é山'.repeat(12000) })) }
  await t.rejects(reader.read(posted('email batch', huge), 'one'), {
    code: 'ERR_WORKER_OUT_OF_MEMORY',
  })
  const { value } = await reader.read(posted('email batch', { emails: [email] }), 'one')
  t.equal(value.count, 1)
})

t.test('a body has the same outcome in the thread as in the event loop', async (t) => {
  const reader = aReader(t)
  const large = 'x'.repeat(70_000)
  for (const body of [
    posted('email', { ...email, html: large }),
    posted('email', { ...email, to: 'delivered@sandbox.postgram.test', html: large }),
    posted('email', { ...email, html: large, more: 1 }),
    posted('email', `{"a":"${large}`),
    posted('email', `[${'['.repeat(70_000)}`),
    posted('sms', { ...sms, body: large }),
    posted('sms batch', { messages: [sms, { ...sms, to: 5 }] }),
    posted('domain', { name: large }),
    posted('suppression', { email: 'a@b.co', note: large }),
    posted('nothing', { a: large }),
    posted('nothing', ' '.repeat(70_000)),
  ]) {
    const copy = { ...body, bytes: Buffer.from(body.bytes) }
    const there = await outcomeOf(reader.read(body, 'one'))
    t.strictSame(there, await outcomeOf(readPostBody(copy, options)), `${body.kind} ${body.call}`)
  }

  const item = fc.oneof(
    fc.jsonValue({ stringUnit: 'binary' }),
    fc.record(
      {
        from: fc.constantFrom('a@b.co', 'Zoë 🎉 <a@bücher.de>', 'a'),
        to: fc.oneof(fc.constant(['a@b.co']), fc.array(fc.string({ unit: anyCharacter }))),
        subject: fc.string({ unit: anyCharacter }),
        text: fc.string({ unit: anyCharacter }),
        tags: fc.jsonValue(),
        class: fc.constantFrom('marketing', null, 'x'),
      },
      { requiredKeys: ['from', 'to'] },
    ),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 5 }), async (emails) => {
      const body = posted('email batch', { emails })
      const copy = { ...body, bytes: Buffer.from(body.bytes) }
      const there = await outcomeOf(reader.read(body, 'one'))
      assert.deepEqual(there, await outcomeOf(readPostBody(copy, options)))
    }),
    { numRuns: 200 },
  )
})

t.test('a batch lists 1 000 problems, and one of each further item', async (t) => {
  const { value } = await readPostBody(posted('email batch', hardBatch(20)), options)
  const counts = JSON.parse(value.json).map(
    (item: { error: { fields: object } }) => Object.keys(item.error.fields).length,
  )
  // 153 problems each: from, subject, the body, and 150 addresses.
  t.strictSame(counts, [...Array(6).fill(153), 82, ...Array(13).fill(1)])
})

t.test('the recipients of all emails of a batch are counted', async (t) => {
  const emails = [{ ...email, to: ['a@c.example', 'b@c.example'], cc: 'c@c.example' }, email, {}]
  const { value } = await readPostBody(posted('email batch', { emails }), options)
  t.equal(value.recipients, 4)
})
