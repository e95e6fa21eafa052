/** What a phone that answers may ask for: no more marketing, or marketing again. */
export type Keyword = 'stop' | 'start'

/**
 * The words that opt out, by language, as src/docs/sms.md#stop-and-start lists them.
 * core.has_opt_out_footer knows those that a footer may ask for.
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

/** UNSUBSCRIBE is known to stop, so SUBSCRIBE undoes it. */
const KEYWORDS = new Map<string, Keyword>([
  ...Object.values(STOP_WORDS)
    .flat()
    .map((word) => [word, 'stop'] as const),
  ...['START', 'UNSTOP', 'SUBSCRIBE'].map((word) => [word, 'start'] as const),
])

/** The keyword that a message from a phone consists of; null when it says anything else besides. */
export function readKeyword(body: string): Keyword | null {
  return KEYWORDS.get(bareWords(body)) ?? null
}

/** The words of a message in capitals, without what stands around and between them. */
export function bareWords(body: string): string {
  return (
    body
      .normalize('NFKC')
      // What nobody sees, such as a zero-width space, parts no word.
      .replace(/\p{Cf}/gu, '')
      .toUpperCase()
      .replace(/[^\p{L}\p{N}]+/gu, ' ')
      .trim()
  )
}
