import smpp from 'smpp'

const namesByNumber = new Map(Object.entries(smpp.errors).map(([name, number]) => [number, name]))

export const OK = 0x00
export const INVALID_COMMAND_LENGTH = 0x02
export const INVALID_COMMAND_ID = 0x03
export const WRONG_BIND_STATE = 0x04
export const ALREADY_BOUND = 0x05
/** ESME_RX_T_APPN: the receiver has a temporary error, and the PDU is to be sent again. */
export const TRY_AGAIN = 0x64

/**
 * The command statuses of SMPP 3.4 (5.1.3) after which the same PDU may succeed later. All other statuses
 * are permanent, including those that networks define (0x400 to 0x4ff).
 */
const TEMPORARY = new Set([
  WRONG_BIND_STATE,
  // ESME_RSYSERR: an internal error of the SMSC.
  0x08,
  // ESME_RMSGQFUL: its queue is full.
  0x14,
  // ESME_RTHROTTLED: we exceed the rate limit.
  0x58,
  TRY_AGAIN,
])

/** ESME_RBINDFAIL, ESME_RINVPASWD, ESME_RINVSYSID, ESME_RINVSYSTYP. */
const LOGIN_STATUSES = new Set([0x0d, 0x0e, 0x0f, 0x53])

/** Whether the same PDU may succeed later. */
export function isTemporary(status: number): boolean {
  return TEMPORARY.has(status)
}

/** Whether the status of a bind concerns user, password or system type. */
export function concernsLogin(status: number): boolean {
  return LOGIN_STATUSES.has(status)
}

/** Whether user or password is wrong. ESME_RBINDFAIL is left out: networks also use it when they are full. */
export function isWrongLogin(status: number): boolean {
  return status === 0x0e || status === 0x0f
}

/** Whether a temporary refusal concerns the SMSC. ESME_RX_T_APPN may concern only this message. */
export function concernsSmsc(status: number): boolean {
  return isTemporary(status) && status !== TRY_AGAIN
}

/** Returns a status as people read it, such as `ESME_RINVDSTADR, 0x0000000b`, or only its number. */
export function labelOf(status: number): string {
  const name = namesByNumber.get(status)
  return name ? `${name}, ${numberOf(status)}` : numberOf(status)
}

/** Returns the name of a status, or its number if it has no name. */
export function nameOf(status: number): string {
  return namesByNumber.get(status) ?? numberOf(status)
}

function numberOf(status: number): string {
  return `0x${status.toString(16).padStart(8, '0')}`
}
