import { randomUUID } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type { Context } from 'koa'
import { FAILED } from './error-page.ts'
import { type Content, html, render } from './html.ts'
import { layout } from './layout.ts'
import type { Frame, View } from './page.ts'

/** Responds with a page. `notice` is a sentence about what was just done; null if there is none. */
export function respondView(ctx: Context, frame: Frame, notice: string | null, view: View): void {
  const { pieces, content, ...rest } = view
  const page = (content: Content) => layout({ ...rest, content, frame, path: ctx.path, notice })
  ctx.type = 'html'
  ctx.body = pieces ? streamed(ctx, page, content, pieces) : page(content)
}

/** Returns a page that is sent piece by piece. An error, which is logged, ends it with a sentence. */
function streamed(
  ctx: Context,
  page: (content: Content) => string,
  content: Content,
  pieces: AsyncIterable<Content>,
): PassThrough {
  const mark = randomUUID()
  const [before = '', after = ''] = page([content, mark]).split(mark)
  const stream = new PassThrough()
  // Koa destroys the stream when the browser leaves.
  const write = (text: string) => !stream.destroyed && stream.write(text)
  const writeAll = async () => {
    write(before)
    for await (const piece of pieces) write(render(piece))
  }
  writeAll()
    .catch((error) => {
      ctx.app.emit('error', error, ctx)
      write(render(html`<p class="problem" role="alert">${FAILED}</p>`))
    })
    .finally(() => stream.end(after))
  return stream
}
