const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** How a message ends. The first attempt of `deferred` is deferred, the next one succeeds. */
export type Fate =
  | 'delivered'
  | 'deferred'
  | 'sent'
  | 'hard_bounce'
  | 'soft_bounce'
  | 'complained'
  | 'unsubscribed'
  | 'suppressed'
  | 'refused'
  | 'undelivered'
  | 'expired'
  | 'stop'

/** A message as a caller sends it. `template` is the name of its template, whose ID the caller would send. */
export type Planned = {
  channel: 'email' | 'sms'
  body: Record<string, unknown>
  template?: string
  fate: Fate
}

/** Messages that are accepted at the same time. */
export type Step = { at: Date; messages: Planned[] }

export const DEMO_SENDER_DOMAIN = 'karoo-books.example'

/** The organisation's own number, to which phones reply. */
export const OWN_NUMBER = '+447700900990'

export const SENDER_NAME = 'KarooBooks'

export const TEMPLATES = [
  {
    name: 'Order confirmation',
    subject: 'Your order {{order}}',
    html: '<h1>Thank you, {{name}}</h1><p>We received your order <b>{{order}}</b> of {{total}}.</p><p>Karoo Books</p>',
    text: 'Thank you, {{name}}.\n\nWe received your order {{order}} of {{total}}.\n\nKaroo Books',
  },
  {
    name: 'Shipping notice',
    subject: 'Order {{order}} is on its way',
    html: '<p>Dear {{name}},</p><p>Your order {{order}} left our shop today.</p><p>Karoo Books</p>',
    text: 'Dear {{name}},\n\nYour order {{order}} left our shop today.\n\nKaroo Books',
  },
  {
    name: 'Password reset',
    subject: 'Reset your password',
    html: null,
    text: 'Dear {{name}},\n\nsomebody asked to reset the password of your account. Open this link within an hour:\n{{link}}\n\nIf it was not you, ignore this message.',
  },
] as const

const FIRST_NAMES =
  'Thandi Sipho Lerato Johan Ayesha Pieter Nomsa Kabelo Zanele Ruan Fatima Bongani Anika Tebogo Megan Sizwe Lindiwe Dirk Naledi Imraan'.split(
    ' ',
  )

const SURNAMES =
  'Nkosi Botha Dlamini Naidoo Mokoena Smith Khumalo VanWyk Molefe Jacobs Mahlangu Pillay Sithole Venter Zulu Adams Radebe Fourie Ndlovu Petersen Maseko Steyn Cele Williams Modise'.split(
    ' ',
  )

const MAIL_HOSTS = ['inbox.example', 'post.example', 'mailbox.example']

const DAYS = 29

/** The webhook endpoints. The second one stops before the month ends. */
export const WORKING_URL = 'https://hooks.karoo-books.example/suppressions'
export const FAILING_URL = 'https://warehouse.karoo-books.example/postgram'

/** For how long one of the webhook endpoints has not responded when the month ends. */
export const FAILING_HOURS = 30

/** Phones that consented to marketing come first; 440 others get transactional SMS only. */
export const CONSENTED_PHONES = Array.from({ length: 60 }, (_, n) => phone(100 + n))

/** The begin of the month that ends at `end`. */
export const beginOf = (end: Date) => new Date(end.getTime() - DAYS * DAY_MS)

/**
 * Returns the month that ends at `end`: some 5 000 messages of a bookshop, in the order of their times. The same
 * for the same end.
 */
export function planMonth(end: Date): Step[] {
  const random = randomFrom(20_26)
  const begin = beginOf(end).getTime()
  const steps = new Map<number, Step>()
  /** Puts a message into the step of its time: a step holds three hours, and on the last day a quarter. */
  const add = (at: number, message: Planned) => {
    const span = at > end.getTime() - DAY_MS - 8 * HOUR_MS ? 15 * MINUTE_MS : 180 * MINUTE_MS
    const slot = Math.floor(at / span) * span
    const step = steps.get(slot) ?? {
      at: new Date(slot + Math.floor(random() * span)),
      messages: [],
    }
    steps.set(slot, step)
    step.messages.push(message)
  }

  for (let day = 0; day < DAYS; day++) {
    const midnight = begin + day * DAY_MS - (begin % DAY_MS)
    const weekday = new Date(midnight).getUTCDay()
    const volume = (weekday === 0 || weekday === 6 ? 80 : 170) + Math.floor(random() * 30)
    for (let n = 0; n < volume; n++) {
      // Most orders come around noon and in the evening, hardly any at night.
      const hour = 4 + 9 * (random() + random()) + random() * 2 - 1
      add(midnight + hour * HOUR_MS, ordinary(random))
    }
    // Marketing goes out on Tuesdays (email) and Thursdays (SMS), at 10 in South Africa.
    if (weekday === 2) {
      for (let n = 0; n < 110; n++) add(midnight + 8 * HOUR_MS, newsletter(random, n))
    }
    if (weekday === 4) {
      for (const [n, to] of [...CONSENTED_PHONES.slice(0, 40), phone(900), phone(901)].entries()) {
        add(midnight + 8 * HOUR_MS, promotion(to, (n + day) % 23 === 0 ? 'stop' : 'delivered'))
      }
    }
  }
  // The first delivery that fails, also when this hour is in the night.
  const confirmed = { ...newsletter(random, 0), fate: 'delivered' as const }
  add(end.getTime() - (FAILING_HOURS - 0.5) * HOUR_MS, confirmed)
  return [...steps.values()]
    .filter(({ at }) => at.getTime() > begin && at.getTime() < end.getTime() - 5 * MINUTE_MS)
    .sort((one, other) => one.at.getTime() - other.at.getTime())
}

/** SMS that wait for their time when the month ends. */
export function scheduledSms(end: Date): Planned[] {
  return [20, 44, 68].map((hours, n) => ({
    channel: 'sms',
    fate: 'delivered',
    body: {
      to: phone(200 + 10 * n),
      class: 'transactional',
      senderId: SENDER_NAME,
      body: 'Karoo Books: your order is ready. Collect it at 12 Church Street until 17:00.',
      scheduledAt: new Date(end.getTime() + hours * HOUR_MS).toISOString(),
      tags: ['collection'],
    },
  }))
}

function ordinary(random: () => number): Planned {
  const kind = random()
  const { name, address } = personOf(random)
  const order = `KB-${10_000 + Math.floor(random() * 80_000)}`
  const from = `Karoo Books <orders@${DEMO_SENDER_DOMAIN}>`
  const fate = emailFate(random)
  if (kind < 0.36) {
    const total = `R ${(80 + Math.floor(random() * 1900)).toFixed(2)}`
    const body = { from, to: address, variables: { name, order, total }, tags: ['order'] }
    return { channel: 'email', template: 'Order confirmation', fate, body }
  }
  if (kind < 0.6) {
    const body = { from, to: address, variables: { name, order }, tags: ['shipping'] }
    return { channel: 'email', template: 'Shipping notice', fate, body }
  }
  if (kind < 0.72) {
    const link = `https://www.${DEMO_SENDER_DOMAIN}/reset/${order.slice(3)}`
    const body = {
      from: `Karoo Books <accounts@${DEMO_SENDER_DOMAIN}>`,
      to: address,
      variables: { name, link },
      tags: ['account', 'password-reset'],
    }
    return { channel: 'email', template: 'Password reset', fate, body }
  }
  if (kind < 0.78) {
    const body = {
      from: `Karoo Books <accounts@${DEMO_SENDER_DOMAIN}>`,
      to: address,
      subject: `Invoice for ${order}`,
      text: `Dear ${name},\n\nyour invoice for ${order} is in your account.\n\nKaroo Books`,
      tags: ['invoice'],
    }
    return { channel: 'email', fate, body }
  }
  const to = phone(200 + Math.floor(random() * 440))
  if (kind < 0.92) {
    const code = String(100_000 + Math.floor(random() * 900_000))
    const text = `${code} is your Karoo Books code. It is valid for 10 minutes.`
    const body = {
      to,
      class: 'transactional',
      senderId: SENDER_NAME,
      body: text,
      tags: ['login-code'],
    }
    return { channel: 'sms', fate: smsFate(random), body }
  }
  const text = `Karoo Books: order ${order} is out for delivery today between 09:00 and 17:00. If nobody is at home, the courier leaves it with a neighbour or tries again on the next working day.`
  const body = { to, class: 'transactional', senderId: SENDER_NAME, body: text, tags: ['shipping'] }
  return { channel: 'sms', fate: smsFate(random), body }
}

function newsletter(random: () => number, n: number): Planned {
  const { name, address } = personOf(random)
  const fate = n === 17 ? 'complained' : n % 40 === 5 ? 'unsubscribed' : emailFate(random)
  return {
    channel: 'email',
    fate,
    body: {
      from: `Karoo Books <news@${DEMO_SENDER_DOMAIN}>`,
      to: address,
      class: 'marketing',
      subject: 'New on our shelves this week',
      html: `<h1>New this week</h1><p>Dear ${name}, ten new titles arrived, from crime to cooking.</p>`,
      text: `Dear ${name},\n\nten new titles arrived, from crime to cooking.`,
      tags: ['newsletter'],
    },
  }
}

const promotion = (to: string, fate: Fate): Planned => ({
  channel: 'sms',
  fate,
  body: {
    to,
    class: 'marketing',
    senderId: OWN_NUMBER,
    body: 'Karoo Books: 20% off all crime novels until Sunday. Reply STOP to opt out.',
    tags: ['promotion'],
  },
})

const emailFate = (random: () => number) =>
  chosen(random, [
    ['delivered', 950],
    ['deferred', 16],
    ['hard_bounce', 9],
    ['soft_bounce', 9],
    ['refused', 6],
    ['sent', 6],
    ['suppressed', 4],
  ])

const smsFate = (random: () => number) =>
  chosen(random, [
    ['delivered', 950],
    ['undelivered', 22],
    ['expired', 14],
    ['refused', 8],
    ['deferred', 6],
  ])

function chosen(random: () => number, weights: readonly (readonly [Fate, number])[]): Fate {
  let left = random() * weights.reduce((sum, [, weight]) => sum + weight, 0)
  for (const [fate, weight] of weights) {
    left -= weight
    if (left < 0) return fate
  }
  return 'delivered'
}

function personOf(random: () => number) {
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] ?? ''
  const name = pick(FIRST_NAMES)
  const address = `${name}.${pick(SURNAMES)}${Math.floor(random() * 4) || ''}@${pick(MAIL_HOSTS)}`
  return { name, address: address.toLowerCase() }
}

/** One of the thousand numbers that are reserved for examples. */
function phone(n: number): string {
  return `+447700900${String(n).padStart(3, '0')}`
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
