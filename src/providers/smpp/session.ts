import type { Socket } from 'node:net'
import { CLOSED, GARBAGE, LinkFailed, SILENT } from './failure.ts'
import { decode, encode, type Fields, Framer, type Pdu } from './pdu.ts'
import type { Smsc } from './smsc.ts'
import { INVALID_COMMAND_ID, INVALID_COMMAND_LENGTH, OK, TRY_AGAIN } from './status.ts'
import type { SmppTimes } from './times.ts'

/** A request was written and has no response, so its outcome is unknown. */
export class NoResponse extends Error {}

export type SessionOptions = SmppTimes & {
  /** Takes a deliver_sm, and returns the command status of the response. */
  deliver(fields: Fields): Promise<number>
}

/** More than the window of any SMSC. Beyond it the SMSC must send a deliver_sm again. */
const MAX_DELIVERIES = 1000

/** With this much unread data the peer has stopped reading. */
const MAX_UNREAD_BYTES = 1024 * 1024

const MAX_SEQUENCE = 0x7fffffff

/** SMPP 3.4. */
const INTERFACE_VERSION = 0x34

const WITHOUT_RESPONSE = new Set(['alert_notification', 'outbind'])

type Waiting = {
  command: string
  timer: NodeJS.Timeout
  resolve: (response: Pdu) => void
  reject: (error: Error) => void
}

/** One connection to an SMSC, from the bind to its end. Memory and time are limited whatever the peer does. */
export class Session {
  /** Resolves with the reason once no further request can be sent. */
  readonly ended: Promise<LinkFailed>
  readonly #socket: Socket
  readonly #options: SessionOptions
  readonly #waiting = new Map<number, Waiting>()
  readonly #enquireTimer: NodeJS.Timeout
  readonly #setEnded: (reason: LinkFailed) => void
  readonly #destroyed = Promise.withResolvers<void>()
  #sequence = 0
  #receivedAt = 0
  #deliveries = 0
  #isOpen = true

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<LinkFailed>()
    this.ended = promise
    this.#setEnded = resolve
    const framer = new Framer()
    socket.on('data', (chunk) => {
      this.#receivedAt = performance.now()
      try {
        for (const octets of framer.push(chunk)) {
          this.#receive(decode(octets))
          if (socket.destroyed) return
        }
      } catch {
        this.destroy(LinkFailed.lost(GARBAGE))
      }
    })
    for (const event of ['end', 'close']) {
      socket.on(event, () => this.destroy(LinkFailed.lost(CLOSED)))
    }
    socket.on('error', ({ code }: NodeJS.ErrnoException) =>
      this.destroy(LinkFailed.lost(code ?? CLOSED)),
    )
    this.#enquireTimer = setInterval(() => {
      if (this.#isOpen) this.request('enquire_link').catch(() => undefined)
    }, options.enquireLinkIntervalMs)
  }

  /** Whether requests can be sent. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether no request and no delivery is in progress. */
  get isIdle(): boolean {
    return this.#waiting.size === 0 && this.#deliveries === 0
  }

  /** Throws LinkFailed. */
  async bind({ systemId, password, systemType }: Smsc): Promise<void> {
    const { status } = await this.request('bind_transceiver', {
      system_id: systemId,
      password,
      system_type: systemType,
      interface_version: INTERFACE_VERSION,
    }).catch(async () => {
      this.destroy(LinkFailed.lost(SILENT))
      throw await this.ended
    })
    if (status === OK) return
    const refusal = LinkFailed.refused(status)
    this.destroy(refusal)
    throw refusal
  }

  /** Sends a request and returns its response; throws NoResponse. Call it only while the session is open. */
  request(command: string, fields: Record<string, unknown> = {}): Promise<Pdu> {
    do this.#sequence = (this.#sequence % MAX_SEQUENCE) + 1
    while (this.#waiting.has(this.#sequence))
    const sequence = this.#sequence
    const { promise, resolve, reject } = Promise.withResolvers<Pdu>()
    const writtenAt = performance.now()
    const timer = setTimeout(() => {
      this.#waiting.delete(sequence)
      reject(new NoResponse('the network did not respond in time'))
      // A single response may be lost. If nothing else came meanwhile, the link is dead.
      if (this.#receivedAt < writtenAt) this.destroy(LinkFailed.lost(SILENT))
    }, this.#options.responseTimeoutMs)
    this.#waiting.set(sequence, { command, timer, resolve, reject })
    this.#write(encode(command, sequence, fields))
    return promise
  }

  /** Unbinds, and resolves once the session is destroyed, at the latest after closeTimeoutMs. */
  async unbind(): Promise<void> {
    if (this.#isOpen) {
      this.request('unbind').catch(() => undefined)
      this.#close(LinkFailed.lost(CLOSED))
    }
    await this.#destroyed.promise
  }

  /** Ends at once; the outcome of requests without a response is unknown. */
  destroy(reason: LinkFailed): void {
    this.#isOpen = false
    clearInterval(this.#enquireTimer)
    this.#setEnded(reason)
    this.#destroyed.resolve()
    this.#socket.destroy()
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { timer, reject } of waiting) {
      clearTimeout(timer)
      reject(new NoResponse('the link was lost before the network responded'))
    }
  }

  /** Sends no further requests, and ends after the last response, at the latest after closeTimeoutMs. */
  #close(reason: LinkFailed): void {
    this.#isOpen = false
    this.#setEnded(reason)
    const timer = setTimeout(() => this.destroy(reason), this.#options.closeTimeoutMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  #receive(pdu: Pdu): void {
    const { command, sequence } = pdu
    if (pdu.isResponse) this.#receiveResponse(pdu)
    else if (command === 'deliver_sm') this.#deliver(pdu)
    else if (command === 'enquire_link') this.#write(encode('enquire_link_resp', sequence))
    else if (command === 'unbind') {
      this.#write(encode('unbind_resp', sequence))
      this.#close(LinkFailed.lost(CLOSED))
    } else if (!WITHOUT_RESPONSE.has(command)) {
      const status = command === 'unreadable' ? INVALID_COMMAND_LENGTH : INVALID_COMMAND_ID
      this.#write(encode('generic_nack', sequence, { command_status: status }))
    }
  }

  #receiveResponse(pdu: Pdu): void {
    const waiting = this.#waiting.get(pdu.sequence)
    const isNack = pdu.command === 'generic_nack' && pdu.status !== OK
    if (!waiting) {
      // The SMSC could not read the sequence number of our request. Any other response came too late.
      if (isNack && pdu.sequence === 0) this.destroy(LinkFailed.lost(GARBAGE))
    } else if (!isNack && pdu.command !== `${waiting.command}_resp`) {
      this.destroy(LinkFailed.lost(GARBAGE))
    } else {
      this.#waiting.delete(pdu.sequence)
      clearTimeout(waiting.timer)
      waiting.resolve(pdu)
      if (!this.#isOpen && this.#waiting.size === 0) this.destroy(LinkFailed.lost(CLOSED))
    }
  }

  #deliver({ sequence, fields }: Pdu): void {
    const respond = (status: number) =>
      this.#write(encode('deliver_sm_resp', sequence, { command_status: status }))
    if (this.#deliveries >= MAX_DELIVERIES) {
      respond(TRY_AGAIN)
      return
    }
    this.#deliveries++
    const end = (status: number) => {
      this.#deliveries--
      respond(status)
    }
    this.#options.deliver(fields).then(end, () => end(TRY_AGAIN))
  }

  #write(octets: Buffer): void {
    if (this.#socket.destroyed) return
    // Corking sends all PDUs of one tick in one packet; a system call for each would cost more than the PDUs.
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    this.#socket.write(octets)
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.destroy(LinkFailed.lost(SILENT))
  }
}
