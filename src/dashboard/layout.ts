import { type Content, html, render } from './html.ts'
import type { Frame, View } from './page.ts'

type Link = { path: string; label: string; key: string }

/** The pages of an organisation: path, label, and the letter that opens it after g. */
const ORGANISATION_PAGES: readonly Link[] = [
  { path: '', label: 'Home', key: 'h' },
  { path: '/messages', label: 'Messages', key: 'm' },
  { path: '/domains', label: 'Domains', key: 'd' },
  { path: '/suppressions', label: 'Suppressions', key: 's' },
  { path: '/templates', label: 'Templates', key: 't' },
  { path: '/webhooks', label: 'Webhooks', key: 'w' },
  { path: '/keys', label: 'API keys', key: 'k' },
  { path: '/sms', label: 'SMS', key: 'p' },
  { path: '/usage', label: 'Usage', key: 'u' },
  { path: '/team', label: 'Team', key: 'e' },
]

const OPERATOR_PAGES: readonly Link[] = [
  { path: '', label: 'Now', key: 'n' },
  { path: '/stuck', label: 'Stuck', key: 's' },
  { path: '/organisations', label: 'Organisations', key: 'o' },
  { path: '/plans', label: 'Plans', key: 'l' },
  { path: '/domains', label: 'Domains at risk', key: 'd' },
  { path: '/endpoints', label: 'Endpoints failing', key: 'w' },
  { path: '/ledger', label: 'Ledger check', key: 'c' },
  { path: '/people', label: 'People', key: 'e' },
]

type LayoutOptions = View & {
  frame: Frame | null
  /** The path of the request. */
  path: string
  /** A sentence about what was just done; null or absent if there is none. */
  notice?: string | null
}

/** Returns the HTML document of a page. */
export function layout({ title, content, frame, path, notice, problem }: LayoutOptions): string {
  const body = html`<body>
    <a class="skip" href="#main">Skip to content</a>
    ${frame && side(frame, path)}
    <main id="main" tabindex="-1">
      ${frame && stateOf(frame)}
      <h1>${title}</h1>
      ${notice && html`<p class="notice" role="status">${notice}</p>`}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      ${content}
    </main>
    ${frame && help(linksOf(frame, path).pages)}
    <script type="module" src="/dashboard/assets/script.js"></script>
  </body>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
${render(html`<title>${`${title} – Postgram`}</title>`)}
<link rel="stylesheet" href="/dashboard/assets/style.css">
</head>
${render(body)}
</html>
`
}

function linksOf(frame: Frame, path: string): { base: string; pages: readonly Link[] } {
  if (path.startsWith('/operator')) return { base: '/operator', pages: OPERATOR_PAGES }
  if (!frame.organisation) return { base: '/dashboard', pages: [] }
  return { base: `/dashboard/${frame.organisation.id}`, pages: ORGANISATION_PAGES }
}

function side(frame: Frame, path: string): Content {
  const { base, pages } = linksOf(frame, path)
  const isOperators = base === '/operator'
  const isCurrent = (link: Link) =>
    link.path === '' ? path === base : `${path}/`.startsWith(`${base}${link.path}/`)
  return html`<header class="side">
    <a class="home" href="/dashboard">Postgram</a>
    <p class="where">${isOperators ? 'Operator' : (frame.organisation?.name ?? '')}</p>
    ${
      pages.length > 0 &&
      html`<nav aria-label="Pages"><ul>${pages.map(
        (link) =>
          html`<li><a href=${base + link.path} data-key=${link.key} aria-current=${isCurrent(link) ? 'page' : null}>${link.label}</a></li>`,
      )}</ul></nav>`
    }
    <div class="account">
      ${frame.organisations.length > 1 && html`<a href="/dashboard">Organisations</a>`}
      ${frame.isOperator && !isOperators && html`<a href="/operator">Operator pages</a>`}
      ${isOperators && frame.organisations.length > 0 && html`<a href="/dashboard">Dashboard</a>`}
      <span class="email">${frame.email}</span>
      <form method="post" action="/logout"><button class="link">Sign out</button></form>
    </div>
  </header>`
}

/** What a member has to know on every page: that sending is stopped, or that an operator views the page. */
function stateOf({ organisation }: Frame): Content {
  if (!organisation) return null
  return html`
    ${organisation.isViewed && html`<p class="banner">You view this organisation as an operator. You can change nothing here.</p>`}
    ${
      organisation.state !== 'active' &&
      html`<p class="banner bad">Sending is ${organisation.state === 'paused' ? 'paused' : 'stopped: the organisation is suspended'}. ${organisation.reason}</p>`
    }`
}

/** The list of keys, which script opens with "?". */
function help(pages: readonly Link[]): Content {
  return html`<dialog id="help" aria-label="Keyboard">
    <h2>Keyboard</h2>
    <dl>
      <div><dt><kbd>/</kbd></dt><dd>Search</dd></div>
      <div><dt><kbd>?</kbd></dt><dd>This list</dd></div>
      ${pages.map(
        ({ key, label }) =>
          html`<div><dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${label}</dd></div>`,
      )}
    </dl>
    <form method="dialog"><button>Close</button></form>
  </dialog>`
}
