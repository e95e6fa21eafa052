import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { escapeHtml } from '../../text/html.ts'
import type { Resource, Visit } from '../page.ts'

const textOrNull = v.nullable(v.string())
const addresses = v.array(v.string())

const bodySchema = v.object({
  channel: v.picklist(enums.channel),
  class: v.string(),
  tags: v.array(v.string()),
  subject: textOrNull,
  scheduledAt: textOrNull,
  sender: v.string(),
  to: addresses,
  cc: addresses,
  bcc: addresses,
  replyTo: textOrNull,
  headers: v.nullable(v.record(v.string(), v.string())),
  html: textOrNull,
  text: textOrNull,
})

type Body = v.InferOutput<typeof bodySchema>

/** Nothing is loaded from outside and no script runs, also where the body is opened outside of its frame. */
const POLICY =
  "default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox"

/** The bodies of a message for the frames of its page, and the request that sends the same again. */
export function bodyResources(call: Call): Resource[] {
  const bodyOf = async ({ session, organisation, id }: Visit) =>
    v.parse(
      bodySchema,
      await call('dashboard_message_body', { session, organisation, message: id }),
    )
  return [
    {
      path: '/dashboard/:organisation/messages/:id/body',
      async respond(visit) {
        const { ctx, query } = visit
        const { html, text } = await bodyOf(visit)
        ctx.set('Content-Security-Policy', POLICY)
        ctx.type = 'html'
        ctx.body =
          query.part === 'html'
            ? inert(html ?? '')
            : asText((query.part === 'source' ? html : text) ?? '')
      },
    },
    {
      path: '/dashboard/:organisation/messages/:id/curl',
      async respond(visit) {
        const body = await bodyOf(visit)
        visit.ctx.type = 'text/plain'
        visit.ctx.body = curlOf(body, visit.publicUrl)
      },
    },
  ]
}

/**
 * Browsers connect to the hosts of these elements before they apply the policy. A link that is clicked would replace the
 * body by an error; in a new window, which the sandbox forbids, it does nothing.
 */
function inert(html: string): string {
  const safe = html.replaceAll(/<(?=(?:link|i?frame|object|embed|base)\b)/gi, '<x-')
  return `${safe}<base target="_blank">`
}

const asText = (text: string) => `<!doctype html>
<meta charset="utf-8">
<style>:root { color-scheme: light dark } pre { white-space: pre-wrap; overflow-wrap: anywhere }</style>
<pre>${escapeHtml(text)}</pre>
`

/** Returns a command for a POSIX shell that sends the message again with the key in $KEY. */
function curlOf(body: Body, publicUrl: string): string {
  const { channel, headers } = body
  const some = (list: readonly string[]) => (list.length > 0 ? list : undefined)
  const request =
    channel === 'sms'
      ? {
          to: body.to[0],
          body: body.text,
          class: body.class,
          senderId: body.sender,
          tags: some(body.tags),
        }
      : {
          from: body.sender,
          to: body.to,
          cc: some(body.cc),
          bcc: some(body.bcc),
          replyTo: body.replyTo ?? undefined,
          subject: body.subject,
          html: body.html ?? undefined,
          text: body.text ?? undefined,
          headers: headers && Object.keys(headers).length > 0 ? headers : undefined,
          tags: some(body.tags),
          class: body.class,
        }
  const url = `${publicUrl}/v1/${channel === 'sms' ? 'sms' : 'emails'}`
  return `curl ${quoted(url)} \\
  -H "Authorization: Bearer $KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${quoted(JSON.stringify(request, null, 2))}
`
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
