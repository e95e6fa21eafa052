import * as v from 'valibot'
import { enums } from '../../db/api.gen.ts'
import type { Call } from '../../db/call.ts'
import { isObject } from '../../schemas/fields.ts'
import { emailAddress, parseForm } from '../form.ts'
import { type Content, html } from '../html.ts'
import { hasRole, type Page, pathOf, refusedIn, type Visit } from '../page.ts'
import { actionButton, field, nextLink, pageOf, ROW_ID, table, time } from '../parts.ts'

/** What a role may do (src/docs/dashboard.md). */
const ROLE_OPTIONS = [
  { value: 'viewer', label: 'viewer: reads' },
  { value: 'member', label: 'member: also changes things' },
  { value: 'owner', label: 'owner: also keys, secrets and members' },
]

const teamSchema = v.object({
  members: v.array(
    v.object({ email: v.string(), role: v.picklist(enums.member_role), since: v.string() }),
  ),
  sessions: v.array(
    v.object({
      id: v.string(),
      email: v.string(),
      client: v.string(),
      signedInAt: v.string(),
      seenAt: v.string(),
      isCurrent: v.boolean(),
      isOwn: v.boolean(),
    }),
  ),
  audit: v.array(
    v.object({
      id: v.string(),
      at: v.string(),
      actor: v.string(),
      action: v.string(),
      target: v.nullable(v.string()),
      before: v.unknown(),
      after: v.unknown(),
    }),
  ),
})

type Team = v.InferOutput<typeof teamSchema>

const role = v.picklist(enums.member_role, 'must be owner, member or viewer')

const inviteSchema = v.strictObject({ email: emailAddress, role })

const roleSchema = v.strictObject({ email: v.string(), role })

const removeSchema = v.strictObject({ email: v.string() })

const revokeSchema = v.strictObject({ id: v.string() })

/** Rows of each of the three lists: members with their forms are the longest rows of the dashboard. */
const TEAM_ROWS = 25

/** Team: members and their roles, sessions, and the audit of the organisation. */
export function teamPage(call: Call): Page {
  return {
    path: '/dashboard/:organisation/team',

    async show(visit) {
      const { session, organisation, query } = visit
      const team = v.parse(
        teamSchema,
        await call('dashboard_team', {
          session,
          organisation,
          ...(query.members && { members_after: query.members }),
          ...(query.sessions && { sessions_before: query.sessions }),
          ...(ROW_ID.test(query.audit ?? '') && { audit_before: query.audit }),
        }),
      )
      const content = html`
        ${hasRole(visit, 'owner') && inviteForm(visit)}
        ${members(visit, team.members)}
        ${sessions(visit, team.sessions)}
        ${audit(visit, team.audit)}`
      return { title: 'Team', content }
    },

    actions: {
      async invite(visit, form) {
        const { session, organisation } = visit
        const { email, role } = parseForm(inviteSchema, form)
        await call('dashboard_invite_member', { session, organisation, email, role })
        return { to: pathOf(visit, 'team'), notice: `${email} is invited; an email is on its way.` }
      },

      async role(visit, form) {
        const { session, organisation } = visit
        const { email, role } = parseForm(roleSchema, form)
        await call('dashboard_change_role', { session, organisation, email, role })
        return { to: pathOf(visit, 'team'), notice: `${email} has the role ${role}.` }
      },

      async remove(visit, form) {
        const { session, organisation, frame } = visit
        const { email } = parseForm(removeSchema, form)
        await call('dashboard_remove_member', { session, organisation, email })
        const to = email === frame.email ? '/dashboard' : pathOf(visit, 'team')
        return { to, notice: `${email} is removed.` }
      },

      async revoke(visit, form) {
        const { session, organisation } = visit
        const { id } = parseForm(revokeSchema, form)
        await call('dashboard_revoke_session', { session, organisation, id })
        return { to: pathOf(visit, 'team'), notice: 'The session is revoked.' }
      },
    },
  }
}

function inviteForm(visit: Visit): Content {
  const refused = refusedIn(visit, 'invite')
  return html`<details open=${refused !== null}>
    <summary>Invite a person</summary>
    <form method="post" action=${pathOf(visit, 'team/invite')} class="stack">
      ${field({
        name: 'email',
        label: 'Email address',
        type: 'email',
        refused,
        isRequired: true,
        hint: 'The person gets an email and signs in with a link.',
      })}
      ${field({ name: 'role', label: 'Role', refused, options: ROLE_OPTIONS, value: 'member' })}
      <button>Invite</button>
    </form>
  </details>`
}

function members(visit: Visit, members: Team['members']): Content {
  const isOwner = hasRole(visit, 'owner')
  const { page, last } = pageOf(members, TEAM_ROWS)
  const next = last && `${pathOf(visit, 'team')}?members=${encodeURIComponent(last.email)}#members`
  return html`<section id="members">
    <h2>Members</h2>
    ${table(
      'Members',
      page,
      [
        { label: 'Email address', cell: ({ email }) => html`<bdi>${email}</bdi>` },
        {
          label: 'Role',
          cell: (member) => (isOwner ? roleForm(visit, member) : member.role),
        },
        { label: 'Since', cell: ({ since }) => time(since) },
        {
          label: 'Action',
          cell: ({ email }) =>
            isOwner && actionButton(pathOf(visit, 'team/remove'), 'Remove', { email }, 'danger'),
        },
      ],
      'The organisation has no members. An operator invites the first one.',
    )}
    ${nextLink(next, 'More members')}
  </section>`
}

function roleForm(visit: Visit, { email, role }: Team['members'][number]): Content {
  return html`<form method="post" action=${pathOf(visit, 'team/role')} class="compact">
    <input type="hidden" name="email" value=${email} />
    <select name="role" aria-label=${`Role of ${email}`}>${enums.member_role.map(
      (value) => html`<option value=${value} selected=${value === role}>${value}</option>`,
    )}</select>
    <button class="plain">Change</button>
  </form>`
}

function sessions(visit: Visit, sessions: Team['sessions']): Content {
  const { page, last } = pageOf(sessions, TEAM_ROWS)
  return html`<section id="sessions">
    <h2>Sessions</h2>
    <p class="hint">${
      hasRole(visit, 'owner')
        ? 'Your sessions, and those of members who belong to no other organisation.'
        : 'Your sessions.'
    } A session ends 12 hours after its last request.</p>
    ${table(
      'Sessions',
      page,
      [
        { label: 'User', cell: ({ email }) => html`<bdi>${email}</bdi>` },
        { label: 'Browser', cell: ({ client }) => html`<bdi>${client || 'unknown'}</bdi>` },
        { label: 'Signed in', cell: ({ signedInAt }) => time(signedInAt) },
        { label: 'Last request', cell: ({ seenAt }) => time(seenAt) },
        {
          label: 'Action',
          cell: ({ id, isCurrent }) =>
            isCurrent
              ? 'this session'
              : actionButton(pathOf(visit, 'team/revoke'), 'Revoke', { id }, 'danger'),
        },
      ],
      'There are no other sessions.',
    )}
    ${nextLink(last && `${pathOf(visit, 'team')}?sessions=${last.id}#sessions`)}
  </section>`
}

function audit(visit: Visit, rows: Team['audit']): Content {
  const { page, last } = pageOf(rows, TEAM_ROWS)
  return html`<section id="audit">
    <h2>Audit</h2>
    ${table(
      'Audit',
      page,
      [
        { label: 'Time', cell: ({ at }) => time(at) },
        { label: 'Who', cell: ({ actor }) => html`<bdi>${actor}</bdi>` },
        { label: 'Action', cell: ({ action }) => html`<code>${action}</code>` },
        { label: 'Of', cell: ({ target }) => html`<bdi>${target}</bdi>` },
        { label: 'Change', cell: ({ before, after }) => changes(before, after) },
      ],
      'Nothing was changed yet. Each change of a domain, key, template or member appears here.',
    )}
    ${nextLink(last && `${pathOf(visit, 'team')}?audit=${last.id}#audit`)}
  </section>`
}

/** The changed values of an audit row: one line for each. */
function changes(before: unknown, after: unknown): Content {
  const old = isObject(before) ? before : {}
  const current = isObject(after) ? after : {}
  const names = [...new Set([...Object.keys(old), ...Object.keys(current)])]
  return names.flatMap((name) => {
    const [from, to] = [textOf(old[name]), textOf(current[name])]
    if (from === to) return []
    if (before === null) return html`<div>${name}: <bdi>${to}</bdi></div>`
    return html`<div>${name}: <bdi>${from}</bdi> → <bdi>${to}</bdi></div>`
  })
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'none'
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
