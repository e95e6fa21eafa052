import t from 'tap'
import { recordsOf, SELECTORS } from '../../src/domains/records.ts'

const domain = {
  name: 'shop.acme.example',
  mailFromLabel: 'mail',
  token: '01jd4x3w2f8h6t5vqkz0m7c9ab',
  dkimZone: 'dkim.postgram.test',
  identity: {
    mail_from_mx: { priority: 10, host: 'MX.Provider.example.' },
    mail_from_spf: 'v=spf1 include:provider.example ~all',
  },
}

t.test('recordsOf(): six records, of which DMARC is optional', async (t) => {
  const token = '01jd4x3w2f8h6t5vqkz0m7c9ab'
  const rows = recordsOf(domain).map((record) => [
    record.purpose,
    record.type,
    record.name,
    record.value,
    record.required,
  ])
  t.same(rows, [
    ['dkim', 'CNAME', 'pg1._domainkey.shop.acme.example', `pg1.${token}.dkim.postgram.test`, true],
    ['dkim', 'CNAME', 'pg2._domainkey.shop.acme.example', `pg2.${token}.dkim.postgram.test`, true],
    ['dkim', 'CNAME', 'pg3._domainkey.shop.acme.example', `pg3.${token}.dkim.postgram.test`, true],
    ['mail_from_mx', 'MX', 'mail.shop.acme.example', '10 mx.provider.example', true],
    [
      'mail_from_spf',
      'TXT',
      'mail.shop.acme.example',
      'v=spf1 include:provider.example ~all',
      true,
    ],
    ['dmarc', 'TXT', '_dmarc.shop.acme.example', 'v=DMARC1; p=none;', false],
  ])
})

t.test('recordsOf(): records are pending before their first lookup', async (t) => {
  for (const { status, found } of recordsOf(domain)) t.same([status, found], ['pending', []])
})

t.test('recordsOf(): three selectors, for the active, the next and the retired key', async (t) => {
  t.same(SELECTORS, ['pg1', 'pg2', 'pg3'])
  const records = recordsOf(domain).filter(({ purpose }) => purpose === 'dkim')
  t.same(
    records.map(({ name }) => name),
    SELECTORS.map((selector) => `${selector}._domainkey.shop.acme.example`),
  )
})
