import * as v from 'valibot'
import type { Call } from '../../db/call.ts'
import { asStored } from '../../schemas/suppression.ts'
import { storable } from '../../text/storable.ts'
import { type Content, html } from '../html.ts'
import { type Page, pathOf, type Resource, type Visit } from '../page.ts'
import { field } from '../parts.ts'
import { optedOutNumbers, optOutActions, optOutsResource, optOutsSchema } from './opt-outs.ts'
import {
  suppressedAddresses,
  suppressionActions,
  suppressionsResource,
  suppressionsSchema,
} from './suppressed-addresses.ts'

const CURSOR = /^cur_[0-7][0-9a-hjkmnp-tv-z]{25}$/
const OPT_OUTS_CURSOR = /^[0-9]{1,17} \+[0-9]{7,15}$/
const LOOKS_LIKE_NUMBER = /^\+?[0-9\s().-]+$/

const listsSchema = v.object({ suppressions: suppressionsSchema, optOuts: optOutsSchema })

/** Suppressed addresses and opted-out numbers; members add, import and remove them. */
export function suppressionsPage(call: Call): Page {
  const back = (visit: Visit) => pathOf(visit, 'suppressions') + visit.ctx.search

  return {
    path: '/dashboard/:organisation/suppressions',

    async show(visit) {
      const { session, organisation, query } = visit
      const search = storable(query.q ?? '').trim()
      const isNumber = LOOKS_LIKE_NUMBER.test(search)
      const lists = v.parse(
        listsSchema,
        await call('dashboard_suppressions', {
          session,
          organisation,
          ...(search && {
            search: asStored(search),
            // A local number begins with 0 in place of the country's code.
            phone: isNumber ? search.replace(/\D/g, '').replace(/^0+/, '') : search,
          }),
          ...(CURSOR.test(query.cursor ?? '') && { cursor: query.cursor }),
          ...(OPT_OUTS_CURSOR.test(query.before ?? '') && { opt_outs_cursor: query.before }),
        }),
      )
      const content = html`
        ${searchForm(search)}
        ${suppressedAddresses(visit, lists.suppressions, search, withQuery(visit, 'cursor', lists.suppressions.nextCursor))}
        ${optedOutNumbers(visit, lists.optOuts, search, withQuery(visit, 'before', lists.optOuts.nextCursor))}`
      return { title: 'Suppressions', content }
    },

    actions: {
      ...suppressionActions(call, back),
      ...optOutActions(call, back),
    },
  }
}

/** The lists as CSV. */
export function suppressionResources(call: Call): Resource[] {
  return [suppressionsResource(call), optOutsResource(call)]
}

function searchForm(search: string): Content {
  return html`<form method="get" class="row" role="search">
    ${field({ name: 'q', label: 'Part of an address or number', type: 'search', refused: null, value: search })}
    <button class="plain">Search</button>
  </form>`
}

/** The path of the page with one more query parameter. */
function withQuery(visit: Visit, name: string, value: string | null): string | null {
  if (value === null) return null
  const query = new URLSearchParams({ ...visit.query, [name]: value })
  return `${pathOf(visit, 'suppressions')}?${query}`
}
