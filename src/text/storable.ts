/** Replaces NUL characters and lone surrogates, which Postgres stores in neither text nor jsonb. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}
