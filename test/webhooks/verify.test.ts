import fc from 'fast-check'
import t, { type Test } from 'tap'
import { sign } from '../../src/webhooks/attempt.ts'
import {
  type SignatureProblem,
  verifyEvent,
  WebhookSignatureError,
} from '../../src/webhooks/verify.js'
import { anyCharacter } from '../fixtures/strings.ts'

const SECRET = `whsec_${'5'.repeat(64)}`
const OTHER = `whsec_${'6'.repeat(64)}`
const BODY = '{"id":"evt_1","type":"email.sent","data":{"subject":"Übergrößen – 💌"}}'
const AT = 1_790_000_000
const now = new Date(AT * 1000)

const isSigned = (request: Partial<Parameters<typeof verifyEvent>[0]> = {}) =>
  verifyEvent({ body: BODY, signature: sign(BODY, [SECRET], AT), secrets: SECRET, now, ...request })

/** The reason of a refusal, or undefined. */
function problemOf(request: Parameters<typeof isSigned>[0]): SignatureProblem | undefined {
  try {
    isSigned(request)
    return
  } catch (error) {
    if (error instanceof WebhookSignatureError) return error.reason
    throw error
  }
}

const refuses = (
  t: Test,
  reason: SignatureProblem,
  request: Parameters<typeof isSigned>[0],
  name: string = reason,
) => t.equal(problemOf(request), reason, name)

const untyped = (value: unknown) => value as string

t.test('verifyEvent(): returns the event of a signed body, as text or bytes', async (t) => {
  const event = JSON.parse(BODY)
  t.strictSame(isSigned(), event)
  t.strictSame(isSigned({ body: Buffer.from(BODY) }), event)
  t.strictSame(isSigned({ body: new TextEncoder().encode(BODY) }), event)
  const inside = Buffer.from(`--${BODY}--`).subarray(2, -2)
  t.strictSame(isSigned({ body: inside }), event, 'a view of more')
})

t.test('verifyEvent(): uses the time of the system by default', async (t) => {
  const at = Math.floor(Date.now() / 1000)
  t.ok(verifyEvent({ body: BODY, signature: sign(BODY, [SECRET], at), secrets: SECRET }))
  refuses(t, 'too_old', { signature: sign(BODY, [SECRET], at - 400), now: undefined })
})

t.test('verifyEvent(): throws with the reason', async (t) => {
  const [time = '', v1 = ''] = sign(BODY, [SECRET], AT).split(',')
  refuses(t, 'no_header', { signature: undefined })
  refuses(t, 'no_header', { signature: null })
  refuses(t, 'no_header', { signature: '' })
  const malformed: Record<string, string> = {
    words: 'hello',
    'only a time': time,
    'only a signature': v1,
    'two times': `${time},${time},${v1}`,
    'two headers, joined as Node does': `${time},${v1}, ${time},${v1}`,
    'a time that is no number': `t=now,${v1}`,
    'a negative time': `t=-1,${v1}`,
    'a fraction': `t=${AT}.0,${v1}`,
    'a time in hexadecimal': `t=0x${AT.toString(16)},${v1}`,
    'a time without end': `t=${'9'.repeat(13)},${v1}`,
    'no time': `t=,${v1}`,
    'a short signature': `${time},${v1.slice(0, -2)}`,
    'a long signature': `${time},${v1}00`,
    'a signature that is not hexadecimal': `${time},v1=${'g'.repeat(64)}`,
    'an empty signature': `${time},v1=`,
    'another scheme': `${time},${v1.replace('v1', 'v0')}`,
    'a header without end': `${time},${v1},${'x'.repeat(4096)}`,
  }
  for (const [name, signature] of Object.entries(malformed)) {
    refuses(t, 'malformed', { signature }, name)
  }
  refuses(t, 'malformed', { signature: [sign(BODY, [SECRET], AT)] }, 'a list of headers')
  refuses(t, 'malformed', { signature: untyped(7) }, 'not a header')

  refuses(t, 'no_match', { secrets: OTHER })
  refuses(t, 'no_match', { secrets: SECRET.slice('whsec_'.length) }, 'the secret in part')
  refuses(t, 'no_match', { body: '' })
  refuses(t, 'no_match', { body: JSON.stringify(JSON.parse(BODY), null, 1) }, 'serialised again')

  refuses(t, 'body', { body: untyped(JSON.parse(BODY)) }, 'an object')
  refuses(t, 'body', { body: untyped(undefined) })
  refuses(t, 'secret', { secrets: untyped(undefined) })
  refuses(t, 'secret', { secrets: '' })
  refuses(t, 'secret', { secrets: [] })
  refuses(t, 'secret', { secrets: [SECRET, untyped(undefined)] }, 'one that is not set')
  t.ok(new WebhookSignatureError('no_match', 'words') instanceof Error)
})

t.test('verifyEvent(): accepts a signature within 300 s, either way', async (t) => {
  const later = (seconds: number) => new Date((AT + seconds) * 1000)
  for (const seconds of [0, 1, 299, 300, 300.999, -1, -300]) {
    t.ok(isSigned({ now: later(seconds) }), `${seconds} seconds after`)
  }
  refuses(t, 'too_old', { now: later(301) })
  refuses(t, 'too_new', { now: later(-301) })
  refuses(t, 'too_new', { now: later(-300.001) })
  t.ok(isSigned({ now: later(10), toleranceSeconds: 10 }))
  refuses(t, 'too_old', { now: later(11), toleranceSeconds: 10 })
  refuses(t, 'too_old', { now: later(1), toleranceSeconds: 0 })
  refuses(t, 'no_match', { now: later(301), secrets: OTHER }, 'the signature is looked at first')
  refuses(t, 'too_old', { toleranceSeconds: Number.NaN }, 'no number tolerates nothing')
  refuses(t, 'too_old', { now: new Date('whenever') })
})

t.test('verifyEvent(): accepts any of several secrets and signatures', async (t) => {
  t.ok(isSigned({ secrets: [OTHER, SECRET] }))
  t.ok(isSigned({ secrets: [SECRET, OTHER] }))
  const rotated = sign(BODY, [OTHER, SECRET], AT)
  t.equal(rotated.match(/v1=/g)?.length, 2)
  t.ok(isSigned({ signature: rotated }))
  t.ok(isSigned({ signature: rotated, secrets: OTHER }))
  t.ok(isSigned({ signature: rotated, secrets: [`whsec_${'7'.repeat(64)}`, OTHER] }))
  refuses(t, 'no_match', { signature: rotated, secrets: [`whsec_${'7'.repeat(64)}`] })
})

t.test('verifyEvent(): ignores order, spaces and other schemes in the header', async (t) => {
  const [time, v1] = sign(BODY, [SECRET], AT).split(',')
  const wrong = `v1=${'0'.repeat(64)}`
  t.ok(isSigned({ signature: `${v1},${time}` }))
  t.ok(isSigned({ signature: `${time}, ${v1}` }))
  t.ok(isSigned({ signature: `v0=abc,${time},v2=x=y,${wrong},,v1,${v1},v1=short,z` }))
  t.ok(isSigned({ signature: `${time},${`${wrong},`.repeat(55)}${v1}` }), 'many signatures')
})

t.test('sign() and verifyEvent() agree on any body', async (t) => {
  const secret = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 80 })
  const secrets = fc.array(secret, { minLength: 1, maxLength: 3 })
  const at = fc.nat({ max: 10 ** 10 })
  const offset = fc.integer({ min: -300, max: 300 })
  const verifies = (value: unknown, secrets: string[], at: number, offset: number) => {
    const body = JSON.stringify(value)
    const signature = sign(body, secrets, at)
    const now = new Date((at + offset) * 1000)
    return secrets.every((key) =>
      [body, Buffer.from(body)].every((sent) => {
        const event = verifyEvent({ body: sent, signature, secrets: key, now })
        return JSON.stringify(event) === JSON.stringify(JSON.parse(body))
      }),
    )
  }
  fc.assert(fc.property(fc.jsonValue(), secrets, at, offset, verifies), { numRuns: 500 })
  t.pass('all did')
})

t.test('verifyEvent(): refuses any malformed header with WebhookSignatureError', async (t) => {
  const part = fc.constantFrom('t=', 'v1=', ',', '=', ' ', String(AT), '0'.repeat(64), 'v2', '\0')
  const header = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.array(part, { maxLength: 12 }).map((parts) => parts.join('')),
  )
  const isRefused = (signature: string) => problemOf({ signature }) !== undefined
  fc.assert(fc.property(header, isRefused), { numRuns: 2000 })
  t.pass('none got in')
})

t.test('a change of any byte is noticed', async (t) => {
  const bytes = Buffer.from(BODY)
  const changedBodies = [...bytes.keys()].flatMap((place) =>
    [1, 32, 128].map((bit) => bytes.with(place, (bytes[place] ?? 0) ^ bit)),
  )
  t.same(
    changedBodies.filter((body) => problemOf({ body }) !== 'no_match'),
    [],
  )
  refuses(t, 'no_match', { body: `${BODY} ` }, 'one more')
  refuses(t, 'no_match', { body: BODY.slice(0, -1) }, 'one less')

  const header = sign(BODY, [SECRET], AT)
  const changedHeaders = [...header].flatMap((character, place) =>
    [...'0fF, ']
      .filter((other) => other !== character)
      .map((other) => {
        return header.slice(0, place) + other + header.slice(place + 1)
      }),
  )
  t.same(
    changedHeaders.filter((signature) => problemOf({ signature }) === undefined),
    [],
  )
  t.ok(changedBodies.length + changedHeaders.length > 500)
})
