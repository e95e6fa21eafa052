import type { Call } from '../../db/call.ts'
import type { Registry } from '../../domains/registry.ts'
import { operatorPages } from '../operator/index.ts'
import type { Page, Resource } from '../page.ts'
import { domainsPage } from './domains.ts'
import { homePage } from './home.ts'
import { keysPage } from './keys.ts'
import { messagePage } from './message.ts'
import { bodyResources } from './message-body.ts'
import { streamResource } from './message-streams.ts'
import { messagesPage, messagesResources } from './messages.ts'
import { smsPage } from './sms.ts'
import { suppressionResources, suppressionsPage } from './suppressions.ts'
import { teamPage } from './team.ts'
import { type TemplateOptions, templatePages, templateResources } from './templates.ts'
import { usagePage } from './usage.ts'
import { webhookPages } from './webhooks.ts'

/** The pages of the dashboard, for members and for operators. */
export function pages(options: TemplateOptions & { registry: Registry }): Page[] {
  const { call, registry } = options
  return [
    homePage(call),
    messagesPage(call),
    messagePage(call),
    domainsPage(call, registry),
    suppressionsPage(call),
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
