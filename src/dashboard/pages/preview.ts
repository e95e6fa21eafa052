import type { Context } from 'koa'
import { html, render } from '../html.ts'

type Rendered = { subject: string; html: string | null; text: string | null }
type Problem = { message: string; problems: Readonly<Record<string, readonly string[]>> }

/**
 * What an email may do in a preview: no script, no form, no request to any host. The frame of its HTML body inherits
 * this policy.
 */
const POLICY =
  "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"

const STYLE = `
:root { color-scheme: light dark }
body { margin: 0; padding: 0.75rem; font: 0.95rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h2 { margin: 0.75rem 0 0.25rem; font-size: 0.85rem }
h2:first-child { margin-top: 0 }
p { margin: 0 }
pre { margin: 0; white-space: pre-wrap; font: 0.9em/1.4 ui-monospace, monospace }
iframe { width: 100%; height: 24rem; border: 1px solid #888; background: white; color-scheme: light }`

/** Responds with a document that shows a rendered email, or why it cannot be rendered. */
export function respondPreview(ctx: Context, preview: Rendered | Problem): void {
  const content =
    'message' in preview
      ? html`<p>${preview.message}</p>
          ${Object.entries(preview.problems).map(
            ([name, problems]) => html`<p>${name}: ${problems.join('; ')}</p>`,
          )}`
      : html`<h2>Subject</h2>
          <p dir="auto">${preview.subject}</p>
          ${preview.html !== null && html`<h2>HTML</h2><iframe title="HTML body" sandbox="" srcdoc=${preview.html}></iframe>`}
          ${preview.text !== null && html`<h2>Text</h2><pre dir="auto">${preview.text}</pre>`}`
  ctx.set('Content-Security-Policy', POLICY)
  ctx.type = 'html'
  ctx.body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Preview</title><style>${STYLE}</style></head>
<body>${render(content)}</body>
</html>
`
}
