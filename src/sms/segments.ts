/** The encoding of an SMS and its segments (3GPP TS 23.038, 23.040). */

/** The default alphabet in the order of its codes; 0x1b is the escape to the extension table. */
const GSM =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
  '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'
const ESCAPE = 0x1b
const EXTENSION: Record<string, number> = {
  '\f': 0x0a,
  '^': 0x14,
  '{': 0x28,
  '}': 0x29,
  '\\': 0x2f,
  '[': 0x3c,
  '~': 0x3d,
  ']': 0x3e,
  '|': 0x40,
  '€': 0x65,
}

/** The septets of each GSM-7 character: one, or two for the extension table. */
const septets = new Map<string, readonly number[]>([
  ...[...GSM].flatMap((character, code) =>
    code === ESCAPE ? [] : [[character, [code]] as [string, number[]]],
  ),
  ...Object.entries(EXTENSION).map(
    ([character, code]) => [character, [ESCAPE, code]] as [string, number[]],
  ),
])

/** Capacity of a single SMS, and of one part of several, whose user data header needs the rest. */
const CAPACITY = {
  gsm7: { alone: 160, part: 153 },
  ucs2: { alone: 70, part: 67 },
} as const

const charactersBySeptets = new Map(
  [...septets].map(([character, codes]) => [`${codes}`, character]),
)

export type Segments = {
  encoding: keyof typeof CAPACITY
  /** The text of each segment. */
  parts: string[]
}

/** Splits a text into segments, never inside an escape sequence or a surrogate pair. */
export function segmentsOf(text: string): Segments {
  const characters = [...text]
  const encoding = characters.every((character) => septets.has(character)) ? 'gsm7' : 'ucs2'
  const size =
    encoding === 'gsm7' ? (c: string) => septets.get(c)?.length ?? 0 : (c: string) => c.length
  const { alone, part } = CAPACITY[encoding]
  const total = characters.reduce((sum, character) => sum + size(character), 0)
  if (total <= alone) return { encoding, parts: [text] }
  const parts = ['']
  let room: number = part
  for (const character of characters) {
    if (size(character) > room) {
      parts.push('')
      room = part
    }
    parts[parts.length - 1] += character
    room -= size(character)
  }
  return { encoding, parts }
}

/** Returns the characters that GSM-7 lacks, each once, in their order. A single one makes the whole text UCS-2. */
export function charactersOutsideGsm7(text: string): string[] {
  return [...new Set(text)].filter((character) => !septets.has(character))
}

/** Returns the octets of a text for SMPP: one for each septet of GSM-7, or big-endian UCS-2. */
export function octetsOf(text: string, encoding: Segments['encoding']): Buffer {
  if (encoding === 'ucs2') return Buffer.from(text, 'utf16le').swap16()
  return Buffer.from([...text].flatMap((character) => septets.get(character) ?? []))
}

/** Decodes GSM-7 with one septet in each octet. Unknown codes become U+FFFD. */
export function textOf(octets: Buffer): string {
  let text = ''
  for (let place = 0; place < octets.length; place++) {
    const code = octets[place] as number
    const next = octets[place + 1]
    const isEscaped = code === ESCAPE && next !== undefined
    if (isEscaped) place++
    // TS 23.038, 6.2.1.1: an escaped code that the extension table lacks is read as unescaped.
    text +=
      (isEscaped ? charactersBySeptets.get(`${ESCAPE},${next}`) : undefined) ??
      charactersBySeptets.get(`${isEscaped ? next : code}`) ??
      '\uFFFD'
  }
  return text
}
