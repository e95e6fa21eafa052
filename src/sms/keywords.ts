/** What a phone that answers may ask for: no more marketing, or marketing again. */
export type Keyword = 'stop' | 'start'

/** UNSUBSCRIBE is known to stop, so SUBSCRIBE undoes it. */
const KEYWORDS = new Map<string, Keyword>([
  ...[
    'STOP',
    'STOPALL',
    'STOP ALL',
    'UNSUBSCRIBE',
    'CANCEL',
    'END',
    'QUIT',
    'OPTOUT',
    'OPT OUT',
  ].map((word) => [word, 'stop'] as const),
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
