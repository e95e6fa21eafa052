/**
 * Sends a notice to a user, as notify_owner does. It has a name of its own because workers of the version before do not know these kinds
 * of notices: during an upgrade they would take the jobs, begin an attempt and fail.
 */
export { default } from './notify_owner.ts'
