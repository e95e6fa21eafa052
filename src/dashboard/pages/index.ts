import type { Call } from '../../db/call.ts'
import { bodyResources } from '../message-body.ts'
import { streamResource } from '../message-streams.ts'
import { operatorPages } from '../operator/index.ts'
import type { Page, Resource } from '../page.ts'
import { domainPages } from './domains.ts'
import { homePage } from './home.ts'
import { keysPage } from './keys.ts'
import { messagePage } from './message.ts'
import { messagesPage, messagesResources } from './messages.ts'
import { smsPage } from './sms.ts'
import { suppressionPages, suppressionResources } from './suppressions.ts'
import { teamPage } from './team.ts'
import { type TemplateOptions, templatePages, templateResources } from './templates.ts'
import { usagePage } from './usage.ts'
import { webhookPages } from './webhooks.ts'

/** The pages of the dashboard, for members and for operators. */
export function pages(options: TemplateOptions): Page[] {
  const { call } = options
  return [
    homePage(call),
    messagesPage(call),
    messagePage(call),
    ...domainPages(call),
    ...suppressionPages(call),
    ...templatePages(options),
    ...webhookPages(call),
    keysPage(call),
    smsPage(call),
    usagePage(call),
    teamPage(call),
    ...operatorPages(call),
  ]
}

/** What pages link to or load that is no page. `stopping` is aborted when the process stops. */
export function resources(call: Call, stopping: AbortSignal): Resource[] {
  return [
    ...messagesResources(call),
    ...bodyResources(call),
    streamResource(call, { stopping }),
    ...suppressionResources(call),
    ...templateResources(call),
  ]
}
