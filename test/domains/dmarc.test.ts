import t from 'tap'
import { isDmarc, isPolicy } from '../../src/domains/dmarc.ts'

const right = [
  'v=DMARC1; p=none;',
  'v=DMARC1;p=none',
  'v = DMARC1 ; P = Reject',
  'V=DMARC1;\tp=quarantine; sp=reject; pct=50; adkim=s; aspf=r',
  'v=DMARC1; p=none; rua=mailto:dmarc@acme.example; ruf=mailto:dmarc@acme.example; fo=1',
  'v=DMARC1; unknown=fine; p=none; and this is no tag',
  'v=DMARC1; pct=100; p=reject',
  // Without a policy that is one, to ask for reports counts as none.
  'v=DMARC1; rua=mailto:dmarc@acme.example',
  'v=DMARC1; p=maybe; rua=https://a.example, mailto:dmarc@acme.example!10m',
]
const wrong = [
  'v=DMARC1',
  'v=DMARC1;',
  'v=DMARC1; p=',
  'v=DMARC1; p=maybe',
  'v=DMARC1; p=none; sp=maybe',
  'v=DMARC1; p=none; p=reject',
  'v=DMARC1; rua=dmarc@acme.example',
  'v=DMARC1; rua=mailto:',
]
const none = ['', 'v=dmarc1; p=none', 'v=DMARC2; p=none', 'p=none; v=DMARC1', ' v=DMARC1; p=none']

t.test('isPolicy(): a record that receivers apply is valid', async (t) => {
  for (const text of right) t.ok(isDmarc(text) && isPolicy(text), text)
})

t.test('isPolicy(): a record that receivers discard is invalid', async (t) => {
  for (const text of wrong) t.ok(isDmarc(text) && !isPolicy(text), text)
})

t.test('isDmarc(): a record without the version first is not DMARC', async (t) => {
  for (const text of none) t.notOk(isDmarc(text) || isPolicy(text), text)
})
