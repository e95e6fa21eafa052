import { hash } from 'node:crypto'
import { escapeHtml } from '../../text/html.ts'

const STYLE = `
:root { color-scheme: light dark; --text: #1c1c1e; --ground: #ffffff; --accent: #0b57c2; --on-accent: #ffffff; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e7e7ea; --ground: #151517; --accent: #8ab4f8; --on-accent: #151517; }
}
body { margin: 0 auto; padding: 2rem 1rem; max-width: 32rem; background: var(--ground); color: var(--text);
  font: 1.1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; line-height: 1.2; }
button { padding: .8rem 1.4rem; border: 0; border-radius: .4rem; background: var(--accent); color: var(--on-accent);
  font: inherit; font-weight: 600; cursor: pointer; }
`

/** The Content-Security-Policy: allows the style above and a form that posts to the page's own URL. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${hash('sha256', STYLE, 'base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The page behind an unsubscribe link: a GET must not unsubscribe, so it has a button. */
export function askPage(email: string, organisation: string): string {
  return page(
    'Unsubscribe?',
    `<p><strong>${escapeHtml(email)}</strong> will get no more marketing email from
<strong>${escapeHtml(organisation)}</strong>. Other email, such as receipts and login codes, still arrives.</p>
<form method="post"><button>Unsubscribe</button></form>`,
  )
}

/** The page after the button was pressed. */
export function donePage(email: string, organisation: string): string {
  return page(
    'You are unsubscribed',
    `<p><strong>${escapeHtml(email)}</strong> gets no more marketing email from
<strong>${escapeHtml(organisation)}</strong>.</p>`,
  )
}

/** The page for an unknown or incomplete link. */
export const unknownPage = page(
  'This link does not work',
  '<p>It may be incomplete. Open it again from the email, or copy the whole link.</p>',
)

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`
}
