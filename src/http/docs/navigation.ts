import { linksOf, type Page, textOf } from './markdown.ts'

export type NavigationGroup = { label: string; pages: { name: string; label: string }[] }

/** Reads the navigation from index.md: its `##` headings, and the page that each list item links to first. */
export function readNavigation({ tokens }: Page): NavigationGroup[] {
  const groups: NavigationGroup[] = []
  let isNewItem = false
  for (const [place, token] of tokens.entries()) {
    if (token.type === 'heading_open' && token.tag === 'h2') {
      groups.push({ label: textOf(tokens[place + 1]), pages: [] })
    }
    if (token.type === 'list_item_open') isNewItem = true
    if (token.type !== 'inline' || !isNewItem) continue
    isNewItem = false
    const [link] = linksOf(token)
    if (link) groups.at(-1)?.pages.push({ name: link.href.replace(/\.md$/, ''), label: link.text })
  }
  return groups
}
