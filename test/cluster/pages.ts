import { programsOf } from '../fixtures/pages.ts'

const files = await programsOf('failover')

/** Returns a file of the page on failover with each of these texts replaced. Throws if the page lacks one. */
export function fileOfPage(name: string, replacements: Record<string, string>): string {
  const start = files[name] ?? ''
  return Object.entries(replacements).reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`${name} of the page has no ${from}`)
    return text.replaceAll(from, to)
  }, start)
}
