import type { Readable } from 'node:stream'
import type { MailMessage, NodemailerError, SMTPPoolSentMessageInfo } from 'nodemailer'
import SMTPPool, { type SMTPPoolSendCallback } from 'nodemailer/lib/smtp-pool'

/** A transaction that the relay did not confirm. */
export class Unconfirmed extends Error {
  override readonly cause: NodemailerError
  /** Whether any content was sent to the relay; if not, it cannot have the message. */
  readonly hasContent: boolean

  constructor(cause: NodemailerError, hasContent: boolean) {
    super(cause.message, { cause })
    this.cause = cause
    this.hasContent = hasContent
  }
}

/** A pool of connections to a relay. Failures are Unconfirmed errors. */
export class RelayPool extends SMTPPool {
  override send(
    mail: MailMessage<SMTPPoolSentMessageInfo>,
    callback: SMTPPoolSendCallback,
  ): boolean {
    // The signed message, which is read once the relay accepts content. nodemailer makes it again after it
    // lost a connection before that.
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
