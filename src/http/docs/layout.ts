import { escapeHtml } from '../../text/html.ts'
import type { Heading } from './markdown.ts'
import type { NavigationGroup } from './navigation.ts'
import type { Rendered } from './render.ts'

type LayoutOptions = Rendered & {
  name: string
  headings: Heading[]
  navigation: NavigationGroup[]
}

/** The list of pages. Its own sections are the groups of the navigation, so it needs no contents. */
const INDEX = 'index'

/** The whole HTML document of a page. */
export function layout({ name, headings, navigation, introduction, sections }: LayoutOptions) {
  const title = headings[0]?.text ?? name
  const contents = name === INDEX ? '' : contentsOf(headings)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(name === INDEX ? title : `${title} – Postgram`)}</title>
<link rel="stylesheet" href="/docs/style.css">
<link rel="alternate" type="text/markdown" href="/docs/${name}.md">
</head>
<body>
<a class="skip" href="#page-main">Skip to content</a>
<div class="side">
<header><a class="home" href="/docs">Postgram</a><a class="to-pages" href="#page-list">Pages</a></header>
<nav class="pages" id="page-list" aria-label="Pages">
${navigation.map((group) => groupOf(group, name)).join('\n')}
</nav>
</div>
<main id="page-main" class="${name}">
<div class="introduction">
${introduction}</div>
${contents}<div class="sections">
${sections}</div>
<footer><a href="/docs/${name}.md">This page as Markdown</a> <a href="/openapi.json">OpenAPI document</a></footer>
</main>
</body>
</html>
`
}

function groupOf({ label, pages }: NavigationGroup, current: string): string {
  const items = pages.map(({ name, label }) => {
    const mark = name === current ? ' aria-current="page"' : ''
    return `<li><a href="/docs/${name}"${mark}>${escapeHtml(label)}</a></li>`
  })
  return `<p>${escapeHtml(label)}</p>\n<ul>\n${items.join('\n')}\n</ul>`
}

/** The `##` headings, each with its `###` headings below it. */
function contentsOf(headings: Heading[]): string {
  const sections: { heading: Heading; inside: Heading[] }[] = []
  for (const heading of headings) {
    if (heading.level === 2) sections.push({ heading, inside: [] })
    if (heading.level === 3) sections.at(-1)?.inside.push(heading)
  }
  if (sections.length === 0) return ''
  const linkTo = ({ id, text }: Heading) => `<a href="#${id}">${escapeHtml(text)}</a>`
  const items = sections.map(({ heading, inside }) => {
    const list = inside.map((one) => `<li>${linkTo(one)}</li>`).join('\n')
    return `<li>${linkTo(heading)}${list && `\n<ul>\n${list}\n</ul>\n`}</li>`
  })
  return `<nav class="contents" aria-label="On this page">
<p>On this page</p>
<ul>
${items.join('\n')}
</ul>
</nav>
`
}
