import type { Readable } from 'node:stream'
import type { MailMessage, NodemailerError, SMTPPoolSentMessageInfo } from 'nodemailer'
import SMTPPool, { type SMTPPoolSendCallback } from 'nodemailer/lib/smtp-pool'

/** A transaction that the relay did not confirm. */
export class Unconfirmed extends Error {
  override readonly cause: NodemailerError
  /** Whether the relay was given any of the message's content: without that it cannot have it. */
  readonly hasBegun: boolean

  constructor(cause: NodemailerError, hasBegun: boolean) {
    super(cause.message, { cause })
    this.cause = cause
    this.hasBegun = hasBegun
  }
}

/** Connections to a relay. What fails is told as Unconfirmed. */
export class RelayPool extends SMTPPool {
  override send(
    mail: MailMessage<SMTPPoolSentMessageInfo>,
    callback: SMTPPoolSendCallback,
  ): boolean {
    // The last step of making the message, signed by then: read once the relay has asked for it.
    // Made anew when a connection was lost before.
    let content: Readable | undefined
    mail.message.processFunc((input) => {
      content = input
      return input
    })
    return super.send(mail, (error, info) => {
      callback(error && new Unconfirmed(error, content?.readableDidRead ?? false), info)
    })
  }
}
