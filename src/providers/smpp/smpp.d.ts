/** The codec of the package, which has no types of its own. Its sessions do not handle a failing peer. */
declare module 'smpp' {
  export class PDU {
    constructor(octets: Buffer)
    constructor(command: string, fields: Record<string, unknown>)
    command: string
    command_id: number
    command_status: number
    sequence_number: number
    toBuffer(): Buffer
    protected _filter(direction: 'encode' | 'decode'): void
  }
  const smpp: {
    /** Command statuses by name. */
    errors: Record<string, number>
  }
  export default smpp
}
