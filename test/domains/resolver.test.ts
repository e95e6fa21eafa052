import t from 'tap'
import { createResolver, LookupFailed } from '../../src/domains/resolver.ts'
import { freeAddress, noNsd, startNsd, startSilence } from '../fixtures/network.ts'
import { until } from '../fixtures/time.ts'

const at = (servers: string[], options = {}) =>
  createResolver({ servers, hasSandbox: false, timeoutMs: 60_000, ...options })

const failure = (code: string) => ({ message: new RegExp(`could not be looked up: ${code}$`) })

t.test('look() with a name server', { skip: noNsd }, async (t) => {
  const { address, publish } = await startNsd({
    'acme.zone': String.raw`
alias CNAME Target.ELSEWHERE.Zone.
dangling CNAME nothing.acme.zone.
mail MX 20 B.Example.
mail MX 5 a.example.
nomail MX 0 .
text TXT "v=spf1 include:pro" "vider.example" " ~all"
text TXT "another"
bytes TXT "a\000b\010c\009d\200e"
long TXT ${`"${'x'.repeat(255)}" `.repeat(8)}
`,
    'broken.zone': null,
  })
  const { look } = at([address])

  t.test('hosts are in lower case without the final dot, MX sorted by preference', async (t) => {
    t.same(await look('alias.acme.zone', 'CNAME'), ['target.elsewhere.zone'])
    t.same(await look('ALIAS.acme.zone', 'CNAME'), ['target.elsewhere.zone'])
    t.same(await look('dangling.acme.zone', 'CNAME'), ['nothing.acme.zone'])
    t.same(await look('mail.acme.zone', 'MX'), ['5 a.example', '20 b.example'])
    t.same(await look('nomail.acme.zone', 'MX'), ['0 .'])
  })

  t.test('strings of a TXT record are joined', async (t) => {
    const texts = await look('text.acme.zone', 'TXT')
    t.same(texts.sort(), ['another', 'v=spf1 include:provider.example ~all'])
    t.same(await look('long.acme.zone', 'TXT'), ['x'.repeat(255 * 8)], 'also by TCP')
  })

  t.test('control characters are replaced', async (t) => {
    t.same(await look('bytes.acme.zone', 'TXT'), ['a\uFFFDb\uFFFDc\td\u00C8e'])
  })

  t.test('an absent name or type returns an empty list', async (t) => {
    t.same(await look('nowhere.acme.zone', 'TXT'), [])
    t.same(await look('mail.acme.zone', 'TXT'), [])
    t.same(await look('mail.acme.zone', 'CNAME'), [])
    t.same(await look('dangling.acme.zone', 'MX'), [])
  })

  t.test('a zone that is not served or refused is a failure', async (t) => {
    await t.rejects(look('text.broken.zone', 'TXT'), failure('ESERVFAIL'))
    await t.rejects(look('acme.elsewhere', 'TXT'), failure('EREFUSED'))
  })

  t.test('an invalid name is a failure', async (t) => {
    await t.rejects(look(`${'x'.repeat(64)}.acme.zone`, 'TXT'), failure('EBADNAME'))
  })

  t.test('a server that does not respond is skipped', async (t) => {
    const resolver = at([await startSilence(), await freeAddress(), address], { timeoutMs: 15_000 })
    t.same(await resolver.look('mail.acme.zone', 'MX'), ['5 a.example', '20 b.example'])
  })

  t.test('a new record is found at once', async (t) => {
    t.same(await look('new.acme.zone', 'TXT'), [])
    await publish('acme.zone', 'new TXT "here"')
    // For a moment the old records may be answered again after the new ones.
    const found = await until('new records', async () => {
      const texts = await look('new.acme.zone', 'TXT')
      return texts.length > 0 && texts
    })
    t.same(found, ['here'])
  })
})

t.test('look(): no response is a failure at the time limit', async (t) => {
  const silences = [await startSilence(), await startSilence(), await startSilence()]
  const { look } = at(silences, { timeoutMs: 600 })
  await t.rejects(look('acme.zone', 'TXT'), failure('ETIMEOUT'))
})

t.test('look(): a refused connection is a failure', async (t) => {
  const { look } = at([await freeAddress()])
  const error = await look('acme.zone', 'TXT').catch((error) => error)
  t.ok(error instanceof LookupFailed)
  t.match(error, failure('ECONNREFUSED'))
  t.equal(error.message, 'the TXT records of acme.zone could not be looked up: ECONNREFUSED')
})

t.test('isSandbox(): names under .test and .example, if enabled', async (t) => {
  const names = ['acme.test', 'mail.acme.example', 'acme.com', 'test', 'example.com', 'acme.latest']
  const sandbox = createResolver({ servers: [], hasSandbox: true })
  t.same(names.filter(sandbox.isSandbox), ['acme.test', 'mail.acme.example'])
  t.same(names.filter(createResolver({ servers: [], hasSandbox: false }).isSandbox), [])
})
