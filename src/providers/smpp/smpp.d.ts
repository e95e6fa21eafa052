/** What is used of the package, which brings no types: its codec. Its sessions are not fit for a peer that fails. */
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
    /** The numbers of command statuses by their names. */
    errors: Record<string, number>
  }
  export default smpp
}
