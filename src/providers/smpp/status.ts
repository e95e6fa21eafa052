import smpp from 'smpp'

const namesByNumber = new Map(Object.entries(smpp.errors).map(([name, number]) => [number, name]))

export const OK = 0x00
export const INVALID_COMMAND_LENGTH = 0x02
export const INVALID_COMMAND_ID = 0x03
export const WRONG_BIND_STATE = 0x04
export const ALREADY_BOUND = 0x05
/** We cannot take it now: the peer is to send it again. */
export const TRY_AGAIN = 0x64

/**
 * What says nothing about the message, of the command statuses of SMPP 3.4 (5.1.3): it may be taken
 * a moment later. All others are answers to this very message and do not change, also those that
 * networks define for themselves (0x400 to 0x4ff).
 */
const TEMPORARY = new Set([
  WRONG_BIND_STATE,
  // ESME_RSYSERR: a fault of the SMSC's own.
  0x08,
  // ESME_RMSGQFUL: its queue is full.
  0x14,
  // ESME_RTHROTTLED: we are faster than we may be.
  0x58,
  // ESME_RX_T_APPN: what stands behind it has a fault that passes.
  TRY_AGAIN,
])

/** What a login is refused by: these do not change before somebody changes the settings. */
const OF_THE_LOGIN = new Set([
  // ESME_RBINDFAIL, ESME_RINVPASWD, ESME_RINVSYSID, ESME_RINVSYSTYP
  ...[0x0d, 0x0e, 0x0f, 0x53],
])

/** Whether the same PDU may be taken a moment later; other statuses do not change. */
export function isTemporary(status: number): boolean {
  return TEMPORARY.has(status)
}

/** Whether a bind was refused for its login: user, password, system type, or ESME_RBINDFAIL. */
export function isOfTheLogin(status: number): boolean {
  return OF_THE_LOGIN.has(status)
}

/** ESME_RINVPASWD, ESME_RINVSYSID. ESME_RBINDFAIL is also what a network says that has no room just now. */
export function isWrongLogin(status: number): boolean {
  return status === 0x0e || status === 0x0f
}

/**
 * Whether a temporary refusal is the SMSC's own state, and not perhaps of this message alone, as
 * ESME_RX_T_APPN may be.
 */
export function isOfTheSmsc(status: number): boolean {
  return isTemporary(status) && status !== TRY_AGAIN
}

/** A status as people read it: `ESME_RINVDSTADR, 0x0000000b`; only the number where it has no name. */
export function labelOf(status: number): string {
  const name = namesByNumber.get(status)
  return name ? `${name}, ${numberOf(status)}` : numberOf(status)
}

/** The name of a status, with which one can look it up; its number where it has none. */
export function nameOf(status: number): string {
  return namesByNumber.get(status) ?? numberOf(status)
}

function numberOf(status: number): string {
  return `0x${status.toString(16).padStart(8, '0')}`
}
