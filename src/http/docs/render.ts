import type { Token } from 'markdown-it'
import { escapeHtml } from '../../text/html.ts'
import { type Page, parser, readFenceInfo, textOf } from './markdown.ts'

export type Rendered = {
  /** The title and the paragraphs before the first `##` heading. */
  introduction: string
  /** All that follows. */
  sections: string
}

const { renderer } = parser

renderer.rules.heading_open = (tokens, place, options) => {
  const token = tokens[place]
  const tag = renderer.renderToken(tokens, place, options)
  return token?.tag === 'h1' ? tag : `${tag}<a href="#${token?.attrGet('id')}">`
}

renderer.rules.heading_close = (tokens, place, options) => {
  const tag = renderer.renderToken(tokens, place, options)
  return tokens[place]?.tag === 'h1' ? tag : `</a>${tag}`
}

// A name such as x-request-id stays on one line where there is room.
renderer.rules.code_inline = (tokens, place) => {
  const { content = '' } = tokens[place] ?? {}
  const kind = /^\S{1,40}$/.test(content) ? ' class="name"' : ''
  return `<code${kind}>${escapeHtml(content)}</code>`
}

renderer.rules.fence = (tokens, place) => {
  const { info = '', content = '' } = tokens[place] ?? {}
  const { language, attributes } = readFenceInfo(info)
  const kind = language && ` class="language-${escapeHtml(language)}"`
  const block = `<pre><code${kind}>${escapeHtml(content)}</code></pre>`
  if (attributes.file === undefined) return `${block}\n`
  return `<figure><figcaption>${escapeHtml(attributes.file)}</figcaption>${block}</figure>\n`
}

// A table that is wider than the page scrolls by itself.
renderer.rules.table_open = () => '<div class="table"><table>\n'
renderer.rules.table_close = () => '</table></div>\n'

/** Renders a page as HTML. Changes the page's tokens, so each page is rendered once. */
export function render({ tokens }: Page): Rendered {
  for (const token of tokens) rewriteLinks(token.children ?? [])
  labelCells(tokens)
  const isSection = ({ type, tag }: Token) => type === 'heading_open' && tag === 'h2'
  const first = tokens.findIndex(isSection)
  const end = first === -1 ? tokens.length : first
  const htmlOf = (part: Token[]) => renderer.render(part, parser.options, {})
  return { introduction: htmlOf(tokens.slice(0, end)), sections: htmlOf(tokens.slice(end)) }
}

/** Makes links point to what the service serves. Links to other files of the repository become text. */
function rewriteLinks(tokens: Token[]) {
  let isHidden = false
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const target = servedTarget(String(token.attrGet('href')))
      isHidden = target === null
      token.attrSet('href', target ?? '')
    }
    if (token.type === 'link_open' || token.type === 'link_close') token.hidden = isHidden
  }
}

/** Where a link of a page points to when it is served; null if the service does not serve that. */
function servedTarget(href: string): string | null {
  if (/^(#|https?:)/.test(href)) return href
  if (href.includes('/')) return null
  return `/docs/${href.replace(/\.md(?=#|$)/, '')}`
}

/**
 * Gives each cell the heading of its column, which a narrow screen shows in front of it. The first cell of a
 * row needs none if it is a name in code.
 */
function labelCells(tokens: Token[]) {
  let labels: string[] = []
  let column = 0
  for (const [place, token] of tokens.entries()) {
    const inline = tokens[place + 1]
    if (token.type === 'table_open') labels = []
    if (token.type === 'tr_open') column = 0
    if (token.type === 'th_open') labels.push(textOf(inline))
    if (token.type !== 'td_open') continue
    const isName = column === 0 && inline?.children?.some(({ type }) => type === 'code_inline')
    const label = labels[column]
    if (label && !isName) token.attrSet('data-label', label)
    column += 1
  }
}
