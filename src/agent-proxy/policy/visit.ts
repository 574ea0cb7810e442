import type { Socket } from 'node:net'
import type { Destination } from '../destination.ts'
import { ProxyError } from '../dial.ts'

/** An exchange that a policy allowed, from its admission to its end. */
export class Visit {
  readonly destination: Destination
  readonly #ended: () => void
  #upstream: Socket | undefined
  #isCut = false
  #sent = 0
  #received = 0

  constructor(destination: Destination, ended: () => void) {
    this.destination = destination
    this.#ended = ended
  }

  /**
   * Counts the bytes of this connection from now on; it closes once the policy forbids it.
   * @throws ProxyError 403 if the policy has changed while the connection was opened.
   */
  opened(upstream: Socket): void {
    this.#upstream = upstream
    if (!this.#isCut) return
    upstream.destroy()
    throw new ProxyError(403, 'The egress policy of this agent no longer allows this host')
  }

  cut(): void {
    this.#isCut = true
    this.#upstream?.destroy()
  }

  /** The bytes since the last call. */
  takeBytes(): { bytesSent: number; bytesReceived: number } {
    const { bytesWritten = 0, bytesRead = 0 } = this.#upstream ?? {}
    const bytes = { bytesSent: bytesWritten - this.#sent, bytesReceived: bytesRead - this.#received }
    this.#sent = bytesWritten
    this.#received = bytesRead
    return bytes
  }

  [Symbol.dispose](): void {
    this.#ended()
  }
}
