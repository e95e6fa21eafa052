import GithubSlugger from 'github-slugger'
import MarkdownIt, { type Token } from 'markdown-it'

/** Tables as on GitHub, and no raw HTML: what looks like a tag is text. */
export const parser = new MarkdownIt()

export type Heading = { level: number; id: string; text: string }

/** A page as a list of tokens, in which each heading has its id as an attribute. */
export type Page = { tokens: Token[]; headings: Heading[] }

/** Parses a page. The ids of its headings are those that GitHub gives them, so links work on both. */
export function parse(markdown: string): Page {
  const tokens = parser.parse(markdown, {})
  const slugger = new GithubSlugger()
  const headings: Heading[] = []
  for (const [place, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue
    const text = textOf(tokens[place + 1])
    const id = slugger.slug(text)
    token.attrSet('id', id)
    headings.push({ level: Number(token.tag.slice('h'.length)), id, text })
  }
  return { tokens, headings }
}

/** The text of a heading, a paragraph or a cell without its markup. */
export function textOf(inline: Token | undefined): string {
  const parts = inline?.children ?? []
  return parts.map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('')
}

export type Link = { href: string; text: string }

/** The links of a heading, a paragraph or a cell, as they are written. */
export function linksOf(inline: Token | undefined): Link[] {
  const links: Link[] = []
  let open: Link | undefined
  for (const child of inline?.children ?? []) {
    if (child.type === 'link_open') {
      open = { href: String(child.attrGet('href')), text: '' }
      links.push(open)
    } else if (child.type === 'link_close') open = undefined
    else if (open) open.text += child.content
  }
  return links
}

type FenceInfo = { language: string; attributes: Record<string, string> }

/** Reads what stands after the fence of a code block, such as `sh not-run="needs Docker" id=upgrade`. */
export function readFenceInfo(info: string): FenceInfo {
  const [language = ''] = info.split(' ', 1)
  const found = info.matchAll(/ ([\w-]+)=(?:"([^"]*)"|(\S+))/g)
  const attributes = [...found].map(([, name = '', quoted, plain = '']) => [name, quoted ?? plain])
  return { language, attributes: Object.fromEntries(attributes) }
}
