import type { Call } from '../../db/call.ts'
import type { Page } from '../page.ts'
import { ledgerPage } from './ledger.ts'
import { nowPage } from './now.ts'
import { organisationPage } from './organisation.ts'
import { organisationsPage } from './organisations.ts'
import { peoplePage } from './people.ts'
import { plansPage } from './plans.ts'
import { domainsPage, endpointsPage } from './risks.ts'
import { stuckPage } from './stuck.ts'

/** The pages of operators. Each action does what a function of ops does. */
export function operatorPages(call: Call): Page[] {
  return [
    nowPage(call),
    stuckPage(call),
    organisationsPage(call),
    organisationPage(call),
    plansPage(call),
    domainsPage(call),
    endpointsPage(call),
    ledgerPage(call),
    peoplePage(call),
  ]
}
