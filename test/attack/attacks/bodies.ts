import { gzipSync } from 'node:zlib'
import { type Attack, type AttackRequest, anEmail, email } from '../attack.ts'

// Attacks by request bodies that are expensive to receive, decompress, parse or validate.

const GZIP_BATCHES = 100

export const gzipBatches: Attack = {
  name: 'gzip-batches',
  title: '100 concurrent batches of 31 KB that decompress to 31 MB each',
  build({ attackers, repeat }) {
    const text = 'a'.repeat(1_000_000)
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const emails = Array.from({ length: 31 }, () => ({ ...anEmail(domain), text }))
        return [key, gzipSync(JSON.stringify({ emails }))]
      }),
    )
    const share = GZIP_BATCHES / attackers.length
    return () =>
      repeat(
        share,
        ({ key }) => ({
          path: '/v1/emails/batch',
          key,
          body: bodies.get(key) ?? '',
          headers: { 'content-encoding': 'gzip' },
        }),
        { count: share },
      )
  },
}

export const gzipSingles: Attack = {
  name: 'gzip-singles',
  title: 'emails of 3 KB that decompress to 3 MB each, 100 at a time',
  build({ attackers, repeat }) {
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const content = {
          ...anEmail(domain),
          html: 'a'.repeat(2_000_000),
          text: 'a'.repeat(1_000_000),
        }
        return [key, gzipSync(JSON.stringify(content))]
      }),
    )
    return () =>
      repeat(100, ({ key }) => ({
        path: '/v1/emails',
        key,
        body: bodies.get(key) ?? '',
        headers: { 'content-encoding': 'gzip' },
      }))
  },
}

export const manyKeys: Attack = {
  name: 'many-keys',
  title: 'bodies with 2 million unknown fields, 4 at a time',
  build({ repeat }) {
    const keys = Array.from({ length: 2_000_000 }, (_, n) => `"${n.toString(36)}":1`)
    const body = Buffer.from(`{${keys.join()}}`)
    return () => repeat(4, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}

export const nestedBrackets: Attack = {
  name: 'nested-brackets',
  title: 'batches of 15 million nested brackets, 4 at a time',
  build({ repeat }) {
    const depth = 15_000_000
    const body = Buffer.concat([
      Buffer.from('{"emails":'),
      Buffer.alloc(depth, '['),
      Buffer.alloc(depth, ']'),
      Buffer.from('}'),
    ])
    return () => repeat(4, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}

/** A name of quoted and plain words, for which the fast path of the parser does not apply. */
const hardName = (n: number) => `${'"a" b '.repeat(15)}${n} <a${n}@b.example>`

export const hardNames: Attack = {
  name: 'hard-names',
  title: 'batches of 17 MB with names of quoted and plain words, one at a time',
  build({ attackers, repeat }) {
    const names = (from: number) => Array.from({ length: 50 }, (_, n) => hardName(from + n))
    const bodies = new Map(
      attackers.map(({ key, domain }) => {
        const one = { ...anEmail(domain, names(0)), cc: names(50), bcc: names(100) }
        return [key, JSON.stringify({ emails: Array.from({ length: 1000 }, () => one) })]
      }),
    )
    return () =>
      repeat(1, ({ key }) => ({ path: '/v1/emails/batch', key, body: bodies.get(key) ?? '' }))
  },
}

export const unusualNames: Attack = {
  name: 'unusual-names',
  title: 'emails to 150 recipients with unusual names, 50 at a time',
  build({ attackers, repeat }) {
    const names = (from: number) => Array.from({ length: 50 }, (_, n) => hardName(from + n))
    const lists = { cc: names(50), bcc: names(100) }
    const requests = new Map(
      attackers.map((attacker) => [
        attacker,
        email(attacker, { ...anEmail(attacker.domain, names(0)), ...lists }),
      ]),
    )
    return () => repeat(50, (attacker) => requests.get(attacker) as AttackRequest)
  },
}

export const unreadBodies: Attack = {
  name: 'unread-bodies',
  title: 'batches of 5 MB with an unknown key, 50 at a time',
  isKeyless: true,
  build({ repeat }) {
    const emails = Array.from({ length: 5 }, () => ({
      ...anEmail('a.example'),
      text: 'a'.repeat(1_000_000),
    }))
    const body = Buffer.from(JSON.stringify({ emails }))
    const key = `sk_live_${'a'.repeat(32)}`
    return () => repeat(50, () => ({ path: '/v1/emails/batch', key, body }))
  },
}

export const unreadOverRate: Attack = {
  name: 'unread-over-rate',
  title: 'batches of 5 MB far over the rate limit, 150 at a time',
  build({ attackers, repeat }) {
    const emails = Array.from({ length: 5 }, () => ({
      ...anEmail('unverified.example'),
      text: 'a'.repeat(1_000_000),
    }))
    const body = Buffer.from(JSON.stringify({ emails }))
    return () =>
      repeat(150 / attackers.length, ({ key }) => ({ path: '/v1/emails/batch', key, body }))
  },
}
