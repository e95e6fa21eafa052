import t from 'tap'
import { includesSpf, isSpf } from '../../src/domains/spf.ts'

t.test('isSpf(): an SPF record begins with its version', async (t) => {
  for (const text of ['v=spf1', 'v=spf1 -all', 'V=SPF1 include:a.example', 'v=spf1  mx']) {
    t.ok(isSpf(text), text)
  }
  for (const text of ['', 'v=spf10 -all', ' v=spf1 -all', 'v=spf1;include:a', 'spf2.0/pra -all']) {
    t.notOk(isSpf(text), text)
  }
})

const OURS = 'v=spf1 include:mailgun.org ~all'

const right = [
  OURS,
  'v=spf1 include:mailgun.org -all',
  'v=spf1 +include:mailgun.org ?all',
  'V=SPF1 Include:MailGun.ORG ~ALL',
  'v=spf1   include:mailgun.org   ~all ',
  'v=spf1 include:mailgun.org.',
  'v=spf1 include:_spf.google.com a mx/24 ip4:192.0.2.0/24 ip6:2001:db8::/32 include:mailgun.org -all',
  'v=spf1 a:mail.acme.example/24//64 ptr exists:%{i}.acme.example include:mailgun.org -all',
  'v=spf1 include:mailgun.org redirect=_spf.acme.example',
  'v=spf1 exp=why.acme.example include:mailgun.org x-unknown=fine -all',
  'v=spf1 -include:elsewhere.example include:mailgun.org -all',
]
const wrong = [
  'v=spf1 -all',
  'v=spf1 include:mailgun.com ~all',
  'v=spf1 include:eu.mailgun.org ~all',
  'v=spf1 -include:mailgun.org ~all',
  'v=spf1 ~include:mailgun.org include:mailgun.org -all',
  'v=spf1 ?include:mailgun.org -all',
  'v=spf1 -all include:mailgun.org',
  'v=spf1 a:mailgun.org mx:mailgun.org -all',
  'v=spf1 redirect=mailgun.org',
  // One term that is none makes the whole record void.
  'v=spf1 inclued:_spf.google.com include:mailgun.org -all',
  'v=spf1 include:mailgun.org all:acme.example',
  'v=spf1 include: mailgun.org',
  'v=spf1 include:mailgun.org, include:_spf.google.com -all',
]

t.test('includesSpf(): true if the provider passes, whatever else the record has', async (t) => {
  for (const text of right) t.ok(isSpf(text) && includesSpf(text, OURS), text)
})

t.test('includesSpf(): false if the provider does not pass or the record is invalid', async (t) => {
  for (const text of wrong) t.notOk(isSpf(text) && includesSpf(text, OURS), text)
})

t.test('includesSpf(): requires all expected mechanisms in any order', async (t) => {
  const ours = 'v=spf1 include:a.example ip4:192.0.2.1 -all'
  t.ok(includesSpf('v=spf1 mx ip4:192.0.2.1 include:a.example ~all', ours))
  t.notOk(includesSpf('v=spf1 include:a.example ~all', ours))
  t.notOk(includesSpf('v=spf1 ip4:192.0.2.1 ~all', ours))
  t.ok(includesSpf('v=spf1 -all', 'v=spf1 ~all'), 'nothing is asked for')
})
