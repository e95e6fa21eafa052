/** Postgres takes neither NUL nor half a surrogate pair, in text as in jsonb. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
