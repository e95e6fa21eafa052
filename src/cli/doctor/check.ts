/** A line of the doctor. */
export type Check = {
  name: string
  ok: boolean
  /** What is wrong if it is not well, and what to do. */
  hint: string
  /** How severe it is when it is not well; a problem when absent. */
  severity?: 'problem' | 'warning'
  /** What is worth knowing when it is well. */
  note?: string
}
