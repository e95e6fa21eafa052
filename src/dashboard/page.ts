import type { Context } from 'koa'
import { enums } from '../db/api.gen.ts'
import type { Form, Refused } from './form.ts'
import type { Content } from './html.ts'

export type Role = (typeof enums.member_role)[number]

/** What api.dashboard_frame returns: the signed-in user, and the organisation of the page. */
export type Frame = {
  email: string
  isOperator: boolean
  signedInAt: string
  organisations: { id: string; name: string; role: Role }[]
  organisation: {
    id: string
    name: string
    state: (typeof enums.organisation_state)[number]
    reason: string | null
    role: Role
    /** Whether an operator views it who is not a member. */
    isViewed: boolean
  } | null
}

/** A request of a signed-in user. */
export type Visit = {
  ctx: Context
  /** The hash of the session's token, the first argument of the functions that pages call. */
  session: string
  frame: Frame
  /** The ID of the organisation in the path; empty on the pages of operators. */
  organisation: string
  /** The last part of the path that has a name, such as a message ID; empty if there is none. */
  id: string
  /** The address of the service. */
  publicUrl: string
  /** The first value of each query parameter. */
  query: Readonly<Record<string, string>>
  /** What the form of this page showed when it was refused; null unless it was. */
  refused: Refused | null
}

/** The content of a page. */
export type View = {
  title: string
  content: Content
  /** Why the form of the page was refused; null or absent unless it was. */
  problem?: string | null
  /**
   * What follows the content while a long action goes on: its progress, then its result. The browser shows each
   * piece when it arrives. The action goes on if the browser leaves.
   */
  pieces?: AsyncIterable<Content>
}

/** What follows from an action: another page, with a sentence on it, or a page that is shown at once (a secret). */
export type Outcome = { to: string; notice?: string } | View

/** A page with its forms. An action is posted to the page's path and its name: /dashboard/…/keys/revoke. */
export type Page = {
  path: string
  show(visit: Visit): Promise<View>
  actions?: Readonly<Record<string, (visit: Visit, form: Form) => Promise<Outcome>>>
}

/**
 * A response that is no page: a file, a stream of events, the body of a message. `respond` sets status and body. The
 * form of a GET is empty.
 */
export type Resource = {
  path: string
  /** Defaults to GET. */
  method?: 'GET' | 'POST'
  respond(visit: Visit, form: Form): Promise<void>
}

/** Returns whether the user of a page has at least this role. Only for what is shown: the database decides. */
export function hasRole({ frame }: Visit, role: Role): boolean {
  const own = frame.organisation?.role ?? 'viewer'
  const order = enums.member_role
  return order.indexOf(own) >= order.indexOf(role)
}

/** The path of a page of the visited organisation: pathOf(visit, 'keys'). */
export function pathOf({ organisation }: Visit, page = ''): string {
  return `/dashboard/${organisation}${page && `/${page}`}`
}

/** Returns what the form of this action showed when it was refused; null if another form of the page was. */
export function refusedIn({ ctx, refused }: Visit, action: string): Refused | null {
  return ctx.path.endsWith(`/${action}`) ? refused : null
}
