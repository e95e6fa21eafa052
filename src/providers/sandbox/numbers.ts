/** Ofcom keeps these thousand mobile numbers for drama: nobody has them. */
const SANDBOX_NUMBER = /^\+447700900\d{3}$/

/** Whether an SMS to this number (E.164) goes nowhere but to the sandbox, whatever the provider. */
export function isSandboxNumber(phone: string): boolean {
  return SANDBOX_NUMBER.test(phone)
}
