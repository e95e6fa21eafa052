import t from 'tap'
import { createDatabase } from '../fixtures/database.ts'

const { sql } = await createDatabase()

const footers = [
  'Reply STOP to opt out',
  'reply stop to opt out',
  'Big sale on Saturday! Reply STOP to opt out.',
  'Reply STOP',
  'Reply with STOP at any time.',
  "Reply 'STOP' to opt out",
  'Reply "STOP" to opt out',
  'Reply “STOP” to opt out',
  'To be removed, reply with the word STOP.',
  'You can opt out by replying STOP.',
  'Opt out by sending STOP',
  'Rply STOP',
  'Text STOP to 12345',
  'Txt STOP to end',
  'TEXT STOP TO 31234',
  'SMS STOP to 31234 (R1)',
  'SMS STOP',
  'Send STOP to +27820000000',
  'Send\nSTOP\nto 12345',
  'STOP to 12345',
  'Sale.STOP to 12345',
  'STOP to +27 82 000 0000',
  'STOP to 082 000 0000',
  'Stop to 12345',
  'STOP to end',
  'STOP to unsubscribe',
  'STOP to cancel',
  'STOP to quit',
  'STOP to opt-out',
  'STOP to optout.',
  'STOP to be removed',
  '20% off. STOP2END',
  'STOP 2 end',
  'STOP = opt out',
  'STOP=unsubscribe',
  'STOP: opt out',
  'STOP for opt out',
  'Opt out: STOP',
  'Opt-out: STOP',
  'OptOut STOP',
  'opt out - stop',
  'Opt-out by STOP',
  'Unsubscribe: STOP',
  'Unsub STOP',
  'Opt out: STOP to 12345',
  'Stuur STOP na 12345',
  'Antwoord STOP',
  'Antwoord met STOP om uit te teken',
  'Stuur die woord STOP',
  'Stuur STAAK na 12345',
  'Teken uit: STOP',
  'Phendula STOP',
  'Phendula ngo-STOP',
  'Phendula ngo STOP',
  'Thumela STOP ku-12345',
  'Thumela u-STOP ku 12345',
  'Thumela igama YEKA',
  'STOP ku-12345',
  'Phendula RHOXISA',
  'Araba STOP',
  'Araba ka EMISA',
  'Romela lentswe STOP ho 12345',
  'STOP ho 12345',
]

const none = [
  '',
  'Big sale on Saturday!',
  "Don't stop the party",
  'Meet us at the bus stop',
  'The bus stop is at 12345 Main Road',
  'Non-stop music',
  'Nonstop to 12345 places',
  'non-stop to 12345 places',
  'STOP',
  'STOP!',
  'Stop by our store',
  'Text. Stop by our store',
  'Our message: stop by our store',
  'Stop to smell the roses',
  'Stop to 5 pm',
  'Stop for end of season sale',
  'A stop to end of month',
  'Reply YES to opt in',
  'Opt out: call 0820000000',
  'Opt out at https://example.com/stop',
  'Reply NO to opt out',
  'Text stops arriving at 9',
  'Send non-stop music',
  'Reply STOPPED',
  'Unsubscribe at our shop, one stop from the centre',
  "We can't stop",
  'Prices drop, we never stop: opt in today',
  'doorstop to 12345',
  'Yeka! Big sale on Saturday',
  'Thumela nonstop music',
  'Send emails to us',
  'Text EMA2024',
  'Stuur 5 SMSe en wen',
  'Hou op soek na iets beters',
]

for (const [expected, bodies] of [
  [true, footers],
  [false, none],
] as const) {
  t.test(`has_opt_out_footer: ${expected ? 'finds a footer' : 'finds no footer'}`, async (t) => {
    const rows = await sql<{ body: string; found: boolean }[]>`
      select b.body, core.has_opt_out_footer(b.body) as found from unnest(${bodies as string[]}::text[]) b (body)`
    t.equal(rows.length, bodies.length)
    for (const { body, found } of rows) t.equal(found, expected, body)
  })
}

t.test('has_opt_out_footer: finds a complete footer at the end of the longest text', async (t) => {
  for (const part of ['reply ', 'stop to ', 'opt-out ', '((((', '    ', 'stopstop']) {
    const body = part.repeat(1600).slice(0, 1580)
    const [row] = await sql`
      select core.has_opt_out_footer(${body}) as without, core.has_opt_out_footer(${`${body} SMS STOP to 12345`}) as with`
    t.same(row, { without: false, with: true }, part)
  }
})
