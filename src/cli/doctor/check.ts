/** A line that the doctor prints. */
export type Check = {
  name: string
  ok: boolean
  /** What is wrong, and how to fix it; printed when `ok` is false. */
  hint: string
  /** The severity when `ok` is false; defaults to problem. */
  severity?: 'problem' | 'warning'
  /** Printed when `ok` is true. */
  note?: string
}
