import * as v from 'valibot'
import type { AcceptEmail } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { Refusal } from '../../errors.ts'
import { isSandbox } from '../../providers/sandbox/email.ts'
import { parseEmail } from '../../schemas/email.ts'
import { type Form, parseForm, refusedBy, textOf } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, type Resource, type Visit } from '../page.ts'
import { actionButton, copyable, nextLink, pageOf, table, time } from '../parts.ts'
import { respondPreview } from './preview.ts'
import {
  changeEntries,
  draftOf,
  editor,
  type Template,
  templateSchema,
  VARIABLE,
  variablesOf,
  versionNumber,
} from './template-editor.ts'

export type TemplateOptions = { call: Call; hasSandboxMessages: boolean }

/** The tag of test emails, by which they are found among the messages. */
const TEST_TAG = 'template-test'

const listSchema = v.array(v.object({ id: v.string(), ...changeEntries }))

const renderedSchema = v.object({
  subject: v.string(),
  html: v.nullable(v.string()),
  text: v.nullable(v.string()),
})

const restoreSchema = v.strictObject({ version: versionNumber })

/** The list of templates, the editor of a new one, and a template with its preview and its versions. */
export function templatePages({ call, hasSandboxMessages }: TemplateOptions): Page[] {
  const list: Page = {
    path: '/dashboard/:organisation/templates',
    async show(visit) {
      const { session, organisation, query } = visit
      const { before } = query
      const rows = v.parse(
        listSchema,
        await call('dashboard_templates', { session, organisation, ...(before && { before }) }),
      )
      const { page, last } = pageOf(rows)
      const content = html`
        ${hasRole(visit, 'member') && html`<p><a class="button" href=${pathOf(visit, 'templates/new')}>Add template</a></p>`}
        ${table(
          'Templates',
          page,
          [
            {
              label: 'Name',
              cell: ({ id, name }) =>
                html`<a href=${pathOf(visit, `templates/${id}`)}><bdi>${name}</bdi></a>`,
            },
            { label: 'templateId', cell: ({ id }) => html`<code>${id}</code>` },
            { label: 'Subject', cell: ({ subject }) => html`<bdi>${subject}</bdi>` },
            { label: 'Version', cell: ({ version }) => version, isNumber: true },
            { label: 'Changed', cell: (row) => changeOf(row) },
          ],
          html`<p>There is no template. A template has a subject and bodies with <code>${'{{variables}}'}</code>; a request names it as <code>templateId</code>.</p>`,
        )}
        ${nextLink(last && `${pathOf(visit, 'templates')}?before=${last.id}`)}`
      return { title: 'Templates', content }
    },
  }

  const added: Page = {
    path: '/dashboard/:organisation/templates/new',
    async show(visit) {
      const content = html`
        <p>Write <code>${'{{name}}'}</code> where a request gives the value of the variable <code>name</code>.</p>
        ${editor(visit, null)}`
      return { title: 'Add a template', content }
    },
    actions: {
      async create(visit, form) {
        const { session, organisation } = visit
        const { name, subject, html, text } = draftOf(form)
        const id = await call('dashboard_create_template', {
          ...{ session, organisation, name, subject, html, text },
        })
        return { to: pathOf(visit, `templates/${id}`), notice: 'The template is added.' }
      },
    },
  }

  const one: Page = {
    path: '/dashboard/:organisation/templates/:id',
    async show(visit) {
      const version = visit.query.version
      const template = await read(call, visit, version)
      const { id, shown } = template
      const content =
        shown.version === template.version
          ? html`
              <p>${copyable(id)} · version ${shown.version} · ${changeOf(shown)}</p>
              ${editor(visit, template)}
              ${versionsOf(visit, template)}
              ${hasRole(visit, 'member') && deletion(visit, template)}`
          : formerVersion(visit, template)
      return { title: shown.name, content }
    },
    actions: {
      async change(visit, form) {
        const { session, organisation, id: template } = visit
        const { version = 0, name, subject, html, text } = draftOf(form)
        await call('dashboard_change_template', {
          ...{ session, organisation, template, version, name, subject, html, text },
        })
        return { to: pathOf(visit, `templates/${template}`), notice: 'The template is saved.' }
      },

      async test(visit, form) {
        const { session, organisation, id: template, ctx } = visit
        const { to } = draftOf(form)
        const email = await testEmail(visit, form)
        if (hasSandboxMessages && isSandbox(email.recipients)) email.is_sandbox = true
        const request: string = ctx.state.requestId
        const sent = await call('dashboard_send_test', {
          ...{ session, organisation, template, request },
          email: JSON.stringify(email),
        })
        // The page is shown and not redirected to: the fields keep what is not saved yet.
        const page = await one.show({ ...visit, refused: { form, problems: {}, message: '' } })
        const notice = html`<p class="notice" role="status">The test email to <bdi>${to}</bdi> is accepted: <a href=${pathOf(visit, `messages/${sent}`)}>${sent}</a>. The template is not saved by this.</p>`
        return { ...page, content: html`${notice}${page.content}` }
      },

      async restore(visit, form) {
        const { session, organisation, id: template } = visit
        const { version } = parseForm(restoreSchema, form)
        const made = await call('dashboard_restore_template', {
          ...{ session, organisation, template, version },
        })
        const notice = `Version ${version} is restored as version ${made}.`
        return { to: pathOf(visit, `templates/${template}`), notice }
      },

      async delete(visit) {
        const { session, organisation, id: template } = visit
        await call('dashboard_delete_template', { session, organisation, template })
        return { to: pathOf(visit, 'templates'), notice: 'The template is deleted.' }
      },
    },
  }

  /** Returns the item of api.accept_emails that sends what the preview shows. */
  async function testEmail(
    visit: Visit,
    form: Form,
  ): Promise<Omit<AcceptEmail, 'call' | 'index' | 'error'>> {
    const { from, to } = draftOf(form)
    const { subject, html, text } = await render(call, visit, form)
    const parsed = parseEmail({ from, to, subject, html, text, tags: [TEST_TAG] })
    if ('fields' in parsed) throw new Refusal('validation_error', parsed.fields)
    return parsed.value
  }

  return [list, added, one]
}

/** Previews of a template, and of what its editor has: documents for a frame. */
export function templateResources(call: Call): Resource[] {
  return [
    {
      path: '/dashboard/:organisation/templates/preview',
      method: 'POST',
      async respond(visit, form) {
        try {
          respondPreview(visit.ctx, await render(call, visit, form))
        } catch (error) {
          const refused = refusedBy(error, form)
          if (!refused) throw error
          respondPreview(visit.ctx, refused)
        }
      },
    },
    {
      path: '/dashboard/:organisation/templates/:id/preview',
      async respond(visit) {
        const { shown } = await read(call, visit, visit.query.version)
        const { subject, html, text } = shown
        const form = new Map(
          Object.entries({ name: [''], subject: [subject], html: [html], text: [text] }),
        )
        respondPreview(visit.ctx, await render(call, visit, form))
      },
    },
  ]
}

async function read(call: Call, visit: Visit, version: string | undefined): Promise<Template> {
  const { session, organisation, id: template } = visit
  const number = version ? v.safeParse(versionNumber, version) : null
  if (number && !number.success) throw new Refusal('not_found')
  const found = await call('dashboard_template', {
    ...{ session, organisation, template },
    ...(number && { version: number.output }),
  })
  return v.parse(templateSchema, found)
}

async function render(call: Call, visit: Visit, form: Form) {
  const { session, organisation } = visit
  const { subject, html, text } = draftOf(form)
  const variables = Object.fromEntries(
    variablesOf(form).map((name) => [name, textOf(form, VARIABLE + name)]),
  )
  const rendered = await call('dashboard_render_template', {
    ...{ session, organisation, subject, html, text },
    variables: JSON.stringify(variables),
  })
  return v.parse(renderedSchema, rendered)
}

function changeOf({
  changedAt,
  changedBy,
}: {
  changedAt: string
  changedBy: string | null
}): Content {
  return html`${time(changedAt)}${changedBy && html` by <bdi>${changedBy}</bdi>`}`
}

function versionsOf(visit: Visit, template: Template): Content {
  const { id, versions, version: present } = template
  return html`<h2>Versions</h2>
    ${table(
      'Versions',
      versions,
      [
        {
          label: 'Version',
          cell: ({ version }) =>
            version === present
              ? `${version} (present)`
              : html`<a href=${`${pathOf(visit, `templates/${id}`)}?version=${version}`}>${version}</a>`,
        },
        { label: 'Name', cell: ({ name }) => html`<bdi>${name}</bdi>` },
        { label: 'Subject', cell: ({ subject }) => html`<bdi>${subject}</bdi>` },
        { label: 'Changed', cell: (row) => changeOf(row) },
        {
          label: '',
          cell: ({ version }) => version !== present && restoreButton(visit, id, version),
        },
      ],
      null,
    )}`
}

function restoreButton(visit: Visit, id: string, version: number): Content {
  return (
    hasRole(visit, 'member') &&
    actionButton(pathOf(visit, `templates/${id}/restore`), `Restore version ${version}`, {
      version: String(version),
    })
  )
}

function formerVersion(visit: Visit, { id, version, shown }: Template): Content {
  const path = pathOf(visit, `templates/${id}`)
  return html`
    <p>Version ${shown.version} · ${changeOf(shown)} · <a href=${path}>To the present version ${version}</a></p>
    ${restoreButton(visit, id, shown.version)}
    <div class="editor">
      <div>
        <h2>Subject</h2><pre>${shown.subject}</pre>
        ${shown.html && html`<h2>HTML</h2><pre>${shown.html}</pre>`}
        ${shown.text && html`<h2>Text</h2><pre>${shown.text}</pre>`}
      </div>
      <iframe title="Preview" sandbox="" src=${`${path}/preview?version=${shown.version}`} class="preview"></iframe>
    </div>`
}

function deletion(visit: Visit, { id }: Template): Content {
  return html`<h2>Delete</h2>
    <details>
      <summary>Delete the template</summary>
      <p>Requests that name it are refused from then on. Its versions are deleted as well.</p>
      ${actionButton(pathOf(visit, `templates/${id}/delete`), 'Delete template', {}, 'danger')}
    </details>`
}
