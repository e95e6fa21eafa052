import t from 'tap'
import { copiesOf } from '../../src/marketing/copies.ts'
import { createUnsubscribeLinks } from '../../src/marketing/unsubscribe-link.ts'
import { emailTo } from '../fixtures/providers.ts'
import { links, secrets } from '../fixtures/service.ts'

const marketing = (to: string[], overrides: Partial<ReturnType<typeof emailTo>> = {}) =>
  emailTo('', {
    to,
    recipients: [...new Set(to.map((one) => one.replace(/^.*<|>$/g, '').toLowerCase()))],
    class: 'marketing',
    ...overrides,
  })

const three = ['Ann <Ann@c.example>', 'bob@c.example', '"Cy <cy@x>" <CY@c.example>']

t.test('copiesOf(): one recipient gets a whole email with unsubscribe headers', async (t) => {
  const email = marketing(['Ann <Ann@c.example>'], { headers: { 'X-A': '1' }, text: 'Hi' })
  const url = links.url({
    organisationId: email.organisationId,
    messageId: email.id,
    email: 'ann@c.example',
  })
  const headers = {
    'X-A': '1',
    'List-Unsubscribe': `<${url}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }
  t.strictSame([...copiesOf(email, links)], [{ ...email, copy: null, headers }])
})

t.test('copiesOf(): each copy shows only its recipient', async (t) => {
  const email = marketing(three, { text: 'Leave: {{unsubscribe_url}}' })
  const copies = [...copiesOf(email, links)]
  t.strictSame(
    copies.map(({ copy, to, cc, bcc, recipients }) => ({ copy, to, cc, bcc, recipients })),
    [
      { copy: 1, to: [three[0]], cc: [], bcc: [], recipients: ['ann@c.example'] },
      { copy: 2, to: [three[1]], cc: [], bcc: [], recipients: ['bob@c.example'] },
      { copy: 3, to: [three[2]], cc: [], bcc: [], recipients: ['cy@c.example'] },
    ],
  )
  for (const { recipients, text, headers } of copies) {
    const { 'List-Unsubscribe': header = '' } = headers as Record<string, string>
    const [, token = ''] = /^<https:\/\/postgram\.test\/u\/(.+)>$/.exec(header) ?? []
    t.strictSame(links.read(token), {
      organisationId: email.organisationId,
      messageId: email.id,
      email: recipients[0],
    })
    t.equal(text, `Leave: https://postgram.test/u/${token}`)
  }
})

t.test('copiesOf(): a repeated address gets one copy, and numbers have no gap', async (t) => {
  const to = ['ann@c.example', 'Ann <ANN@c.example>', 'bob@c.example', 'Bob <bob@C.example>']
  t.strictSame(
    [...copiesOf(marketing(to), links)].map((copy) => [copy.copy, copy.to]),
    [
      [1, ['ann@c.example']],
      [2, ['bob@c.example']],
    ],
  )
  const [alone, ...others] = copiesOf(marketing(to.slice(0, 2)), links)
  t.match(alone, { copy: null, to: ['ann@c.example'] })
  t.same(others, [])
})

t.test('copiesOf(): a settled recipient gets no copy, others keep their number', async (t) => {
  const email = marketing(three, { settledRecipients: ['ann@c.example', 'cy@c.example'] })
  t.strictSame(
    [...copiesOf(email, links)].map(({ copy, recipients }) => [copy, recipients]),
    [[2, ['bob@c.example']]],
  )
})

t.test('copiesOf(): replaces each placeholder with the link, with or without blanks', async (t) => {
  const [copy] = copiesOf(
    marketing(['ann@c.example'], {
      html: '<a href="{{unsubscribe_url}}">{{ unsubscribe_url }}</a> {{\tunsubscribe_url\n}}',
      text: '{{unsubscribe_url}}{{  unsubscribe_url}} {{unsubscribe_url }} $& {unsubscribe_url} {{unsubscribe}}',
    }),
    links,
  )
  const url = links.url({
    organisationId: copy?.organisationId ?? '',
    messageId: copy?.id ?? '',
    email: 'ann@c.example',
  })
  t.equal(copy?.html, `<a href="${url}">${url}</a> ${url}`)
  t.equal(copy?.text, `${url}${url} ${url} $& {unsubscribe_url} {{unsubscribe}}`)
})

t.test('copiesOf(): escapes the link in html', async (t) => {
  const odd = createUnsubscribeLinks({ secrets, publicUrl: `https://p.test/a&b'$&"<` })
  const email = marketing(['ann@c.example'], {
    html: '{{unsubscribe_url}}',
    text: '{{unsubscribe_url}}',
  })
  const [copy] = copiesOf(email, odd)
  t.ok(copy?.html?.startsWith('https://p.test/a&amp;b&#39;$&amp;&quot;&lt;/u/'))
  t.ok(copy?.text?.startsWith(`https://p.test/a&b'$&"</u/`))
})

t.test('copiesOf(): replaces at most 100 placeholders', async (t) => {
  const html = '{{unsubscribe_url}}'.repeat(100_000)
  const [copy] = copiesOf(marketing(['a@c.example'], { html }), links)
  t.equal(copy?.html?.split('https:').length, 101)
  t.ok(copy?.html?.endsWith(html.slice(0, -100 * '{{unsubscribe_url}}'.length)))
})

t.test('copiesOf(): a missing body stays null', async (t) => {
  t.match(
    [...copiesOf(marketing(['a@c.example'], { text: null, html: '<p>' }), links)],
    [{ text: null, html: '<p>' }],
  )
})
