import type { Socket } from 'node:net'
import { CLOSED, GARBAGE, LinkFailed, SILENT } from './failure.ts'
import { decode, encode, type Fields, Framer, type Pdu } from './pdu.ts'
import type { Smsc } from './smsc.ts'
import { INVALID_COMMAND_ID, INVALID_COMMAND_LENGTH, OK, TRY_AGAIN } from './status.ts'

/** A request was written, and nobody knows what became of it. */
export class Unanswered extends Error {}

export type SessionOptions = {
  answersWithinMs: number
  enquireEveryMs: number
  /** How long what is under way may take to end after an unbind. */
  closesWithinMs: number
  /** Takes a deliver_sm, and answers with the command status that the SMSC is to be told. */
  deliver(fields: Fields): Promise<number>
}

/** More deliver_sm than any window has; who sends yet more has to send them again. */
const MAX_DELIVERIES = 1000

/** So much written that was not read, and the peer does not read at all. */
const MAX_UNREAD_BYTES = 1024 * 1024

const MAX_SEQUENCE = 0x7fffffff

/** SMPP 3.4. */
const INTERFACE_VERSION = 0x34

const WITHOUT_ANSWER = new Set(['alert_notification', 'outbind'])

type Waiting = {
  command: string
  timer: NodeJS.Timeout
  resolve: (answer: Pdu) => void
  reject: (error: Error) => void
}

/** One connection to an SMSC, from its bind to its end. Whatever the peer does, it is bounded and ends. */
export class Session {
  /** Settles with the reason once nothing more can be asked. */
  readonly over: Promise<LinkFailed>
  readonly #socket: Socket
  readonly #options: SessionOptions
  readonly #waiting = new Map<number, Waiting>()
  readonly #enquiring: NodeJS.Timeout
  readonly #end: (reason: LinkFailed) => void
  readonly #ended = Promise.withResolvers<void>()
  #sequence = 0
  #heardAt = 0
  #deliveries = 0
  #isOpen = true

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<LinkFailed>()
    this.over = promise
    this.#end = resolve
    const framer = new Framer()
    socket.on('data', (chunk) => {
      this.#heardAt = performance.now()
      try {
        for (const octets of framer.push(chunk)) {
          this.#take(decode(octets))
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
    this.#enquiring = setInterval(() => {
      if (this.#isOpen) this.request('enquire_link').catch(() => undefined)
    }, options.enquireEveryMs)
  }

  /** Whether requests can be written. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Whether anything is under way. */
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
      throw await this.over
    })
    if (status === OK) return
    const refusal = LinkFailed.refused(status)
    this.destroy(refusal)
    throw refusal
  }

  /** Write a request; answers with its response, or throws Unanswered. To be asked only while it is open. */
  request(command: string, fields: Record<string, unknown> = {}): Promise<Pdu> {
    do this.#sequence = (this.#sequence % MAX_SEQUENCE) + 1
    while (this.#waiting.has(this.#sequence))
    const sequence = this.#sequence
    const { promise, resolve, reject } = Promise.withResolvers<Pdu>()
    const writtenAt = performance.now()
    const timer = setTimeout(() => {
      this.#waiting.delete(sequence)
      reject(new Unanswered('the network did not answer in time'))
      // One answer may be lost. With nothing else heard meanwhile the link is dead.
      if (this.#heardAt < writtenAt) this.destroy(LinkFailed.lost(SILENT))
    }, this.#options.answersWithinMs)
    this.#waiting.set(sequence, { command, timer, resolve, reject })
    this.#write(encode(command, sequence, fields))
    return promise
  }

  /** Say goodbye, and end once what was asked is answered, or soon. */
  async unbind(): Promise<void> {
    if (this.#isOpen) {
      this.request('unbind').catch(() => undefined)
      this.#close(LinkFailed.lost(CLOSED))
    }
    await this.#ended.promise
  }

  /** End at once: nobody knows what becomes of what is not answered. */
  destroy(reason: LinkFailed): void {
    this.#isOpen = false
    clearInterval(this.#enquiring)
    this.#end(reason)
    this.#ended.resolve()
    this.#socket.destroy()
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { timer, reject } of waiting) {
      clearTimeout(timer)
      reject(new Unanswered('the link was lost before the network answered'))
    }
  }

  /** Ask nothing more, and end once what was asked is answered, or soon. */
  #close(reason: LinkFailed): void {
    this.#isOpen = false
    this.#end(reason)
    const timer = setTimeout(() => this.destroy(reason), this.#options.closesWithinMs)
    this.#socket.once('close', () => clearTimeout(timer))
  }

  #take(pdu: Pdu): void {
    const { command, sequence } = pdu
    if (pdu.isResponse) this.#answer(pdu)
    else if (command === 'deliver_sm') this.#deliver(pdu)
    else if (command === 'enquire_link') this.#write(encode('enquire_link_resp', sequence))
    else if (command === 'unbind') {
      this.#write(encode('unbind_resp', sequence))
      this.#close(LinkFailed.lost(CLOSED))
    } else if (!WITHOUT_ANSWER.has(command)) {
      const status = command === 'unreadable' ? INVALID_COMMAND_LENGTH : INVALID_COMMAND_ID
      this.#write(encode('generic_nack', sequence, { command_status: status }))
    }
  }

  #answer(pdu: Pdu): void {
    const waiting = this.#waiting.get(pdu.sequence)
    const isNack = pdu.command === 'generic_nack' && pdu.status !== OK
    if (!waiting) {
      // It could not even read which request of ours it was. Any other answer came too late.
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
    const answer = (status: number) =>
      this.#write(encode('deliver_sm_resp', sequence, { command_status: status }))
    if (this.#deliveries >= MAX_DELIVERIES) {
      answer(TRY_AGAIN)
      return
    }
    this.#deliveries++
    const end = (status: number) => {
      this.#deliveries--
      answer(status)
    }
    this.#options.deliver(fields).then(end, () => end(TRY_AGAIN))
  }

  #write(octets: Buffer): void {
    if (this.#socket.destroyed) return
    // What is written in one go leaves in one: a packet and a system call for each PDU would cost more
    // than the PDUs.
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    this.#socket.write(octets)
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.destroy(LinkFailed.lost(SILENT))
  }
}
