/** `stop` opts the phone out of marketing, `start` opts it in again. */
export type Keyword = 'stop' | 'start'

/**
 * The words that opt out, by language (src/docs/sms.md#stop-and-start). core.has_opt_out_footer() has those
 * that a footer may name.
 */
export const STOP_WORDS = {
  English: [
    ...['STOP', 'STOPALL', 'STOP ALL', 'UNSUBSCRIBE', 'CANCEL', 'END', 'QUIT', 'OPTOUT', 'OPT OUT'],
  ],
  Afrikaans: ['STAAK', 'HOU OP', 'KANSELLEER', 'TEKEN UIT'],
  isiZulu: ['YEKA', 'MISA', 'YIMA', 'KHANSELA'],
  isiXhosa: ['YEKA', 'MISA', 'YIMA', 'RHOXISA'],
  Sesotho: ['EMA', 'EMISA', 'KGAOTSA', 'TLOHELA'],
} as const

/** SUBSCRIBE reverses UNSUBSCRIBE. */
const KEYWORDS = new Map<string, Keyword>([
  ...Object.values(STOP_WORDS)
    .flat()
    .map((word) => [word, 'stop'] as const),
  ...['START', 'UNSTOP', 'SUBSCRIBE'].map((word) => [word, 'start'] as const),
])

/** Returns the keyword if an inbound SMS has nothing else; otherwise null. */
export function readKeyword(body: string): Keyword | null {
  return KEYWORDS.get(bareWords(body)) ?? null
}

/** Returns the words of a message in capitals, separated by single blanks, without punctuation. */
export function bareWords(body: string): string {
  return (
    body
      .normalize('NFKC')
      // An invisible character, such as a zero-width space, does not separate words.
      .replace(/\p{Cf}/gu, '')
      .toUpperCase()
      .replace(/[^\p{L}\p{N}]+/gu, ' ')
      .trim()
  )
}
