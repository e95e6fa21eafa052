import t from 'tap'
import { createDatabase, traces } from '../fixtures/database.ts'
import { anEmail, errorOf, isRefused, post } from '../fixtures/http.ts'
import { createOrganisation, liftRate } from '../fixtures/organisation.ts'
import { startTestService } from '../fixtures/service.ts'

const { url, sql } = await createDatabase()
const { base } = await startTestService(url, { roles: ['api'] })
const organisation = await createOrganisation(sql)
const { id, liveKey, testKey, domain } = organisation
await liftRate(sql, organisation)

type Parts = { subject?: string; html?: string | null; text?: string | null }

async function createTemplate(
  { subject = 'Hello', html = null, text = null }: Parts,
  owner = id,
): Promise<string> {
  const [row] = await sql`
    select ops.create_template(${owner}, 'A template', ${subject}, ${html}, ${text}) as template`
  return row?.template
}

const send = (templateId: string, fields: Record<string, unknown> = {}, key = liveKey) =>
  post(
    `${base}/v1/emails`,
    key,
    anEmail(domain, { subject: undefined, text: undefined, templateId, ...fields }),
  )

async function render(parts: Parts, fields: Record<string, unknown> = {}) {
  const { status, json } = await send(await createTemplate(parts), fields)
  if (status !== 200) throw new Error(JSON.stringify(json))
  const [row] = await sql`
    select m.subject, b.html, b.text
    from app.messages m join app.bodies b on b.message_id = m.id
    where m.id = core.decode_id('em', ${json.id})`
  return { ...row }
}

t.test('placeholders are replaced, with and without spaces, several times', async (t) => {
  const rendered = await render(
    {
      subject: 'Order {{order.no}} for {{name}}',
      html: '<p>{{name}}, {{ name }}, {{\tname\n}}{{name}}</p>',
      text: '{{name}} owes {{order.no}}',
    },
    { variables: { name: 'Jane', 'order.no': 17 } },
  )
  t.strictSame(rendered, {
    subject: 'Order 17 for Jane',
    html: '<p>Jane, Jane, JaneJane</p>',
    text: 'Jane owes 17',
  })
})

t.test('variables are escaped in html and unchanged in text and subject', async (t) => {
  const name = `<b>"Tom" & 'Jerry'</b> &amp; \\1 $& 100%`
  t.strictSame(
    await render(
      { subject: '{{name}}', html: '<p>{{name}}</p>', text: '{{name}}' },
      { variables: { name } },
    ),
    {
      subject: name,
      html: '<p>&lt;b&gt;&quot;Tom&quot; &amp; &#39;Jerry&#39;&lt;/b&gt; &amp;amp; \\1 $&amp; 100%</p>',
      text: name,
    },
  )
})

t.test('variables may be numbers, booleans and empty strings', async (t) => {
  const variables = { zero: 0, half: 0.5, minus: -1, yes: true, no: false, none: '' }
  const rendered = await render(
    { text: '{{zero}}|{{half}}|{{minus}}|{{yes}}|{{no}}|{{none}}|' },
    { variables },
  )
  t.equal(rendered.text, '0|0.5|-1|true|false||')
})

t.test('a variable that looks like a placeholder is not replaced', async (t) => {
  const rendered = await render(
    { subject: '{{a}}{{b}}', html: '{{a}}{{b}}', text: '{{b}}{{a}}' },
    { variables: { a: '{{b}}', b: '{{a}} {{c}}' } },
  )
  const both = '{{b}}{{a}} {{c}}'
  t.strictSame(rendered, { subject: both, html: both, text: '{{a}} {{c}}{{b}}' })
})

t.test('braces that are no placeholders are unchanged', async (t) => {
  const text = '{{}} {{ }} {{two words}} {name} {{a|b}} {{{name}}} }}{{ {{é}}'
  const rendered = await render({ text }, { variables: { name: 'x' } })
  t.equal(rendered.text, text.replace('{{{name}}}', '{x}'))
})

t.test('a line break in a variable is not in the subject', async (t) => {
  for (const [value, expected] of [
    ['a\r\nBcc: x@c.example', 'a Bcc: x@c.example'],
    ['a\nb', 'a b'],
    ['a\rb\r\n\r\nc', 'a b c'],
    ['a\u0085b\u2028c', 'a b\u2028c'],
    ['\u0001\u007f', ' '],
  ]) {
    const rendered = await render(
      { subject: 'Re: {{name}}', text: '{{name}}' },
      { variables: { name: value } },
    )
    t.strictSame([rendered.subject, rendered.text], [`Re: ${expected}`, value])
    t.notMatch(rendered.subject, /\p{Cc}/u)
  }
})

t.test('a subject in the request replaces the subject of the template', async (t) => {
  const parts = { subject: 'Unused {{unused}}', text: 'Hello {{name}}' }
  const rendered = await render(parts, { subject: 'Dear {{name}}', variables: { name: 'Jane' } })
  t.strictSame([rendered.subject, rendered.text], ['Dear Jane', 'Hello Jane'])
})

t.test('unsubscribe_url is not a variable and is replaced at the attempt', async (t) => {
  const text = 'Leave: {{unsubscribe_url}} {{ unsubscribe_url }}'
  const rendered = await render({ text }, { class: 'marketing', variables: { x: 1 } })
  t.equal(rendered.text, 'Leave: {{unsubscribe_url}} {{unsubscribe_url}}')
  const given = await render({ text }, { variables: { unsubscribe_url: 'https://evil.example' } })
  t.notMatch(given.text, 'evil', 'a variable of that name changes nothing')
})

t.test('a template with only html or only text renders only that', async (t) => {
  t.match(await render({ html: '<p>a</p>' }), { html: '<p>a</p>', text: null })
  t.match(await render({ text: 'a' }), { html: null, text: 'a' })
})

t.test(
  'an email without variables of its template is refused, with every missing one',
  async (t) => {
    const template = await createTemplate({
      subject: '{{in.subject}}',
      html: '{{in_html}} {{both}}',
      text: '{{in-text}} {{ both }} {{unsubscribe_url}}',
    })
    const missing = ['is needed by the template']
    const before = await traces(sql)
    isRefused(t, await send(template), 'validation_error', {
      'variables.in.subject': missing,
      'variables.in_html': missing,
      'variables.in-text': missing,
      'variables.both': missing,
    })
    const variables = { 'in.subject': '', in_html: 0, Both: 'x' }
    isRefused(t, await send(template, { variables }), 'validation_error', {
      'variables.in-text': missing,
      'variables.both': missing,
    })
    isRefused(t, await send(template, { variables, subject: '{{more}}' }), 'validation_error', {
      'variables.more': missing,
      'variables.in-text': missing,
      'variables.both': missing,
    })
    t.strictSame(await traces(sql), before, 'nothing is stored')
  },
)

t.test('an unknown template or one of another organisation is refused', async (t) => {
  const other = await createOrganisation(sql)
  const theirs = await createTemplate({ text: 'a' }, other.id)
  const ours = await createTemplate({ text: 'a' })
  const fields = { templateId: ['is not a template of this organisation'] }
  for (const template of [
    theirs,
    'welcome',
    'tpl_',
    'tpl_00000000000000000000000000',
    ours.toUpperCase(),
    `${ours}0`,
    ours.replace('tpl_', 'em_'),
  ]) {
    isRefused(t, await send(template), 'validation_error', fields, { name: template })
  }
  isRefused(t, await send(theirs, {}, testKey), 'validation_error', fields, { name: 'a test key' })
  t.equal((await send(ours)).status, 200)
})

t.test('an email that is too large after rendering is refused', async (t) => {
  const variables = { x: 'é'.repeat(10_000) }
  const long = await createTemplate({ subject: '{{x}}', text: 'a' })
  isRefused(t, await send(long, { variables }), 'validation_error', {
    subject: ['must be 1 to 998 characters once rendered'],
  })
  isRefused(t, await send(long, { variables: { x: '' } }), 'validation_error', {
    subject: ['must be 1 to 998 characters once rendered'],
  })
  t.equal((await send(long, { variables: { x: 'é'.repeat(998) } })).status, 200)

  const tooLarge = { templateId: ['is larger than a body may be once rendered'] }
  const html = await createTemplate({ html: '{{x}}'.repeat(105) })
  isRefused(t, await send(html, { variables }), 'validation_error', tooLarge)
  const text = await createTemplate({ text: '{{x}}'.repeat(53) })
  isRefused(t, await send(text, { variables }), 'validation_error', tooLarge)
})

t.test('a changed template affects the next email, not accepted ones', async (t) => {
  const template = await createTemplate({ text: 'One' })
  const first = await send(template)
  await sql`update app.templates set text = 'Two' where id = core.decode_id('tpl', ${template})`
  const second = await send(template)
  const rows = await sql`
    select text from app.bodies
    where message_id in (core.decode_id('em', ${first.json.id}), core.decode_id('em', ${second.json.id}))
    order by message_id`
  t.strictSame(
    rows.map((row) => row.text),
    ['One', 'Two'],
  )
})

t.test('template problems come before org_paused', async (t) => {
  const paused = await createOrganisation(sql)
  await sql`select ops.pause(${paused.id}, 'complaints')`
  const templateId = await createTemplate({ text: 'Hello {{name}}' }, paused.id)
  const body = anEmail(paused.domain, { subject: undefined, text: undefined, templateId })
  const missing = await post(`${base}/v1/emails`, paused.liveKey, body)
  t.strictSame(
    [missing.status, missing.json.error.fields],
    [422, { 'variables.name': ['is needed by the template'] }],
  )
  const complete = await post(`${base}/v1/emails`, paused.liveKey, {
    ...body,
    variables: { name: 'Jane' },
  })
  t.strictSame([complete.status, complete.json.error.code], [423, 'org_paused'])
})

t.test('a changed template takes effect at the next request', async (t) => {
  const template = await createTemplate({ text: 'Before' })
  const before = await send(template)
  await sql`select ops.change_template(${template}, 'Another', 'Hi', '<p>{{name}}</p>', '')`
  const after = await send(template, { variables: { name: 'Jane' } })
  const rows = await sql`
    select m.subject, b.html, b.text
    from app.messages m join app.bodies b on b.message_id = m.id
    where m.id in (core.decode_id('em', ${before.json.id}), core.decode_id('em', ${after.json.id}))
    order by m.id`
  t.strictSame(
    rows.map((row) => ({ ...row })),
    [
      { subject: 'Hello', html: null, text: 'Before' },
      { subject: 'Hi', html: '<p>Jane</p>', text: null },
    ],
  )
  const [listed] = await sql`select name, placeholders from ops.templates where id = ${template}`
  t.same(listed, { name: 'Another', placeholders: ['name'] })

  await sql`select ops.delete_template(${template})`
  isRefused(t, await send(template), 'validation_error', {
    templateId: ['is not a template of this organisation'],
  })
  t.same(await sql`select from ops.templates where id = ${template}`, [])
  const [kept] = await sql`
    select text from app.bodies where message_id = core.decode_id('em', ${before.json.id})`
  t.same(kept, { text: 'Before' }, 'the accepted email is unchanged')
})

t.test('a batch whose templates would render to gigabytes writes no temporary files', async (t) => {
  const template = await createTemplate({ subject: 'Hi', html: '{{a}}'.repeat(200), text: null })
  const email = anEmail(domain, {
    subject: undefined,
    text: undefined,
    templateId: template,
    variables: { a: 'x'.repeat(10_000) },
  })
  // For new connections: a statement that needs a temporary file fails.
  await sql.unsafe(`alter database ${new URL(url).pathname.slice(1)} set temp_file_limit = 0`)
  const { base } = await startTestService(url, { roles: ['api'] })
  const { json } = await post(`${base}/v1/emails/batch`, liveKey, {
    emails: Array.from({ length: 100 }, () => email),
  })
  const fields = {
    templateId: ['together with the emails before it is larger than 16 MB once rendered'],
  }
  t.strictSame(
    json.results.map(({ ok, error }: { ok: boolean; error: unknown }) => ok || error),
    [...Array(8).fill(true), ...Array(92).fill(errorOf('validation_error', fields))],
  )
})
