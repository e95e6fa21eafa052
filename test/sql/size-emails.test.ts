import fc from 'fast-check'
import t from 'tap'
import { createDatabase, rolledBack, type Tx } from '../fixtures/database.ts'
import { createOrganisation } from '../fixtures/organisation.ts'

const { sql } = await createDatabase()
const { id: organisation } = await createOrganisation(sql)

type Parts = { subject?: string; html?: string | null; text?: string | null }
type Rendered = Required<Parts> & { fields: Record<string, string[]> | null }
type Variables = Record<string, string | number | boolean>

async function createTemplate(tx: Tx, { subject = 'Hello', html = null, text = null }: Parts) {
  const [row] = await tx<{ id: string }[]>`
    select ops.create_template(${organisation}, 'A template', ${subject}, ${html}, ${text}) as id`
  return String(row?.id)
}

async function render(
  tx: Tx,
  template: string,
  variables: Variables | null = null,
  { subject = null as string | null, owner = organisation } = {},
): Promise<Rendered> {
  const item = { call: 0, template_id: template, subject, variables }
  const filled = JSON.stringify(variables ?? {})
  const [row] = await tx<Rendered[]>`
    select s.subject, s.fields,
      case when s.fields is null then core.render_template_text(t.html, ${filled}::text::jsonb, true) end as html,
      case when s.fields is null then core.render_template_text(t.text, ${filled}::text::jsonb, false) end as text
    from core.size_emails(
      jsonb_build_array(jsonb_build_object('n', 0, 'organisation_id', core.decode_id('org', ${owner}))),
      ${JSON.stringify([item])}::text::jsonb, false) e
    cross join unnest(e.sized) s
    left join unnest(e.templates) t on s.template > 0`
  if (!row) throw new Error('nothing was rendered')
  return { ...row }
}

/** Creates a template in a transaction, renders it and rolls back. */
async function rendered(parts: Parts, variables: Variables | null = null, subject?: string) {
  let result: Rendered | undefined
  await rolledBack(sql, async (tx) => {
    result = await render(
      tx,
      await createTemplate(tx, parts),
      variables,
      subject === undefined ? {} : { subject },
    )
  })
  return result
}

t.test('size_emails: replaces placeholders anywhere, with or without blanks', async (t) => {
  t.strictSame(
    await rendered(
      { subject: '{{a}}', html: '{{ a }}-{{b.c}}{{a}}', text: '\n{{\ta\n}}{{d-e_1}}' },
      { a: 'A', 'b.c': 2.5, 'd-e_1': true },
    ),
    { subject: 'A', html: 'A-2.5A', text: '\nAtrue', fields: null },
  )
})

t.test(
  'size_emails: a template without placeholders or without one of its bodies is unchanged',
  async (t) => {
    t.strictSame(await rendered({ html: '<p>{}</p> { {a} } {{}} {{a b}} {{é}}' }), {
      subject: 'Hello',
      html: '<p>{}</p> { {a} } {{}} {{a b}} {{é}}',
      text: null,
      fields: null,
    })
  },
)

t.test('size_emails: placeholders and backslashes in values have no effect', async (t) => {
  const variables = { a: '{{b}}', b: '{{a}} \\1 \\& $1 {{unsubscribe_url}}' }
  t.strictSame(await rendered({ subject: '{{a}} {{b}}', text: '{{b}}{{a}}' }, variables), {
    subject: '{{b}} {{a}} \\1 \\& $1 {{unsubscribe_url}}',
    html: null,
    text: '{{a}} \\1 \\& $1 {{unsubscribe_url}}{{b}}',
    fields: null,
  })
  const split = await rendered({ text: '{{a}}b}}' }, { a: '{{', b: 'never' })
  t.equal(split?.text, '{{b}}')
})

t.test('size_emails: values are escaped in html only', async (t) => {
  const a = `<a href="x" class='y'>&amp;</a>`
  t.strictSame(await rendered({ subject: '{{a}}', html: '<b>{{a}}</b>', text: '{{a}}' }, { a }), {
    subject: a,
    html: '<b>&lt;a href=&quot;x&quot; class=&#39;y&#39;&gt;&amp;amp;&lt;/a&gt;</b>',
    text: a,
    fields: null,
  })
})

t.test(
  'size_emails: keeps unsubscribe_url for the attempt and needs no variable for it',
  async (t) => {
    t.strictSame(
      await rendered({ html: '<a href="{{ unsubscribe_url }}">', text: '{{unsubscribe_url}}' }),
      {
        subject: 'Hello',
        html: '<a href="{{unsubscribe_url}}">',
        text: '{{unsubscribe_url}}',
        fields: null,
      },
    )
    const given = await rendered(
      { text: '{{unsubscribe_url}}' },
      { unsubscribe_url: 'https://evil.example' },
    )
    t.equal(given?.text, '{{unsubscribe_url}}')
  },
)

t.test(
  'size_emails: each placeholder without a variable is one field, and nothing is rendered',
  async (t) => {
    t.strictSame(
      await rendered(
        { subject: '{{a}} {{b}}', html: '{{b}}{{c}}', text: '{{d}}{{given}}' },
        { given: '', A: '' },
      ),
      {
        subject: null,
        html: null,
        text: null,
        fields: {
          'variables.a': ['is needed by the template'],
          'variables.b': ['is needed by the template'],
          'variables.c': ['is needed by the template'],
          'variables.d': ['is needed by the template'],
        },
      },
    )
    const none = await rendered({ text: '{{a}}' })
    t.strictSame(none?.fields, { 'variables.a': ['is needed by the template'] })
  },
)

t.test('size_emails: unused variables are ignored, and an empty one is a value', async (t) => {
  const result = await rendered({ text: '[{{a}}]' }, { a: '', more: 'x' })
  t.strictSame(result, { subject: 'Hello', html: null, text: '[]', fields: null })
})

t.test(
  "size_emails: a subject of the request replaces the template's and is rendered",
  async (t) => {
    const result = await rendered(
      { subject: '{{not_needed}}', text: 'Hi' },
      { a: 'A' },
      'Mine, {{a}}',
    )
    t.strictSame(result, { subject: 'Mine, A', html: null, text: 'Hi', fields: null })
  },
)

t.test('size_emails: a line break in a value adds no header', async (t) => {
  const result = await rendered(
    { subject: 'To {{a}}!', text: '{{a}}' },
    { a: 'x\r\nBcc: y\t\u0001\u007fz' },
  )
  t.equal(result?.subject, 'To x Bcc: y z!')
  t.equal(result?.text, 'x\r\nBcc: y\t\u0001\u007fz')
})

t.test('size_emails: refuses a subject that is empty or too long once rendered', async (t) => {
  for (const a of ['', 'x'.repeat(999)]) {
    const result = await rendered({ subject: '{{a}}', text: 'Hi' }, { a })
    t.strictSame(result?.fields, { subject: ['must be 1 to 998 characters once rendered'] })
  }
  t.equal((await rendered({ subject: '{{a}}', text: 'Hi' }, { a: 'é'.repeat(998) }))?.fields, null)
})

t.test('size_emails: accepts exactly 2 MB of html and 1 MB of text once rendered', async (t) => {
  const refused = { templateId: ['is larger than a body may be once rendered'] }
  const half = 'é'.repeat(262_144)
  const full = await rendered({ html: '{{a}}{{a}}{{a}}{{a}}', text: '{{a}}{{a}}' }, { a: half })
  t.equal(full?.fields, null)
  t.equal(Buffer.byteLength(String(full?.html)), 2_097_152)
  const tooMuchText = await rendered({ html: 'x', text: '{{a}}{{a}}.' }, { a: half })
  t.strictSame(tooMuchText?.fields, refused)
  const tooMuchHtml = await rendered({ html: '{{a}}{{a}}{{a}}{{a}}.' }, { a: half })
  t.strictSame(tooMuchHtml?.fields, refused)
  // The size counts the escaped characters.
  const escaped = await rendered({ html: '{{a}}' }, { a: '"'.repeat(400_000) })
  t.strictSame(escaped?.fields, refused)
})

t.test(
  'size_emails: refuses the largest template with the largest variables without an error',
  async (t) => {
    const html = `${'x'.repeat(2_000_000)}${'{{a}}'.repeat(200)}`
    const result = await rendered({ html }, { a: '"'.repeat(10_000) })
    t.strictSame(result?.fields, { templateId: ['is larger than a body may be once rendered'] })
  },
)

t.test('size_emails: refuses a template of another organisation', async (t) => {
  const { id: other } = await createOrganisation(sql)
  await rolledBack(sql, async (tx) => {
    const template = await createTemplate(tx, { text: 'Hi' })
    t.equal((await render(tx, template)).fields, null)
    const refused = { templateId: ['is not a template of this organisation'] }
    t.strictSame((await render(tx, template, null, { owner: other })).fields, refused)
    for (const unknown of [
      '',
      'x',
      template.toUpperCase(),
      `${template}0`,
      template.replace('tpl', 'em'),
    ]) {
      t.strictSame((await render(tx, unknown)).fields, refused, unknown)
    }
  })
})

t.test('size_emails: equals replacing each placeholder of any template once', async () => {
  const names = ['a', 'b', 'a.b', 'x_1', 'Z-']
  const placeholder = /\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}/g
  const name = fc.constantFrom(...names)
  const literal = fc.string({
    unit: fc.constantFrom('x', ' ', '{', '}', '\\', '$', '&', '<', "'", '\n', 'é', 'a'),
  })
  const piece = fc.oneof(
    literal,
    name.map((known) => `{{${known}}}`),
    name.map((known) => `{{  ${known} }}`),
    fc.constant('{{unsubscribe_url}}'),
  )
  const value = fc.oneof(literal, piece, fc.integer(), fc.boolean())
  const toHtml = (text: string) =>
    text.replace(
      /[&<>"']/g,
      (one) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": '#39' }[one]};`,
    )
  const expected = (template: string, variables: Variables, change: (text: string) => string) =>
    template.replaceAll(placeholder, (_, known: string) =>
      known === 'unsubscribe_url' ? '{{unsubscribe_url}}' : change(String(variables[known])),
    )
  await fc.assert(
    fc.asyncProperty(
      fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join('')),
      fc.record({ a: value, b: value, 'a.b': value, x_1: value, 'Z-': value }),
      async (template, variables) => {
        fc.pre(template !== '')
        // Literals can make a placeholder as well, of a name that has no value.
        const named = [...template.matchAll(placeholder)].map(([, one = '']) => one)
        fc.pre(named.every((one) => one === 'unsubscribe_url' || names.includes(one)))
        const result = await rendered({ html: template, text: template }, variables)
        if (result?.fields) throw new Error(JSON.stringify(result.fields))
        if (result?.text !== expected(template, variables, (text) => text))
          throw new Error(`text: ${result?.text}`)
        if (result?.html !== expected(template, variables, toHtml))
          throw new Error(`html: ${result?.html}`)
      },
    ),
    { numRuns: 200 },
  )
})

type Sized = { template: number; bytes: number | null; fields: Record<string, string[]> | null }

/** Sizes emails with templates; each is given as call, template and value of `a`. */
async function sizedOf(tx: Tx, emails: [call: number, template: string, a: string][]) {
  const calls = [...new Set(emails.map(([call]) => call))]
  const items = emails.map(([call, template, a]) => ({
    call,
    template_id: template,
    variables: { a },
  }))
  const [row] = await tx<{ sized: (Sized | null)[]; templates: number }[]>`
    select to_jsonb(e.sized) as sized, cardinality(e.templates) as templates
    from core.size_emails(
      (select jsonb_agg(jsonb_build_object('n', n, 'organisation_id', core.decode_id('org', ${organisation})))
       from unnest(${calls}::integer[]) n),
      ${JSON.stringify(items)}::text::jsonb, false) e`
  if (!row) throw new Error('nothing was sized')
  return row
}

const TOO_MUCH = {
  templateId: ['together with the emails before it is larger than 16 MB once rendered'],
}

t.test(
  'size_emails: a call may render 16 MB, and smaller emails after one too large fit',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const template = await createTemplate(tx, { html: '{{a}}'.repeat(200) })
      const large = 'x'.repeat(10_000)
      const { sized, templates } = await sizedOf(tx, [
        ...Array.from({ length: 9 }, (): [number, string, string] => [0, template, large]),
        [0, template, 'x'],
        [1, template, large],
      ])
      t.equal(templates, 1, 'the template is parsed once')
      t.strictSame(
        sized.map((email) => email?.fields),
        [...Array(8).fill(null), TOO_MUCH, null, null],
      )
      t.equal(sized[0]?.bytes, 2_000_000)
    })
  },
)

t.test(
  'size_emails: a call may use 16 MB of templates, whatever is rendered from them',
  async (t) => {
    await rolledBack(sql, async (tx) => {
      const templates: string[] = []
      for (let n = 0; n < 9; n++) {
        templates.push(await createTemplate(tx, { html: `{{${' '.repeat(2_000_000)}a}}` }))
      }
      const result = await sizedOf(
        tx,
        templates.map((template) => [0, template, 'x']),
      )
      t.equal(result.templates, 8, 'the ninth is not parsed')
      t.strictSame(
        result.sized.map((email) => email?.fields),
        [...Array(8).fill(null), TOO_MUCH],
      )
    })
  },
)

t.test('size_emails: items without a template have no size', async (t) => {
  await rolledBack(sql, async (tx) => {
    const template = await createTemplate(tx, { text: '{{a}}' })
    const { sized } = await sizedOf(tx, [
      [0, template, 'x'],
      [0, null as unknown as string, ''],
      [0, template, 'xy'],
    ])
    t.strictSame(
      sized.map((email) => email?.bytes),
      [1, undefined, 2],
    )
  })
})
