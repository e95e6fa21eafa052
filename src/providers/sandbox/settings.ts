/** The settings of the sandbox, for email and for SMS: it has none. */
export type SandboxSettings = { provider: 'sandbox' }

export const sandboxSettings: SandboxSettings = { provider: 'sandbox' }
