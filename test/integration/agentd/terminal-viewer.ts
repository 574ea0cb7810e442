/** A connection to a terminal of agentd. */
import { request } from 'node:http'
import type { Socket } from 'node:net'
import {
  bytesFrames,
  FrameReader,
  messageFrame,
  TERMINAL_UPGRADE,
  type TerminalEvent,
  type TerminalRequest,
} from '../../../agentd/terminal-frames.ts'
import type { ServedAgentd } from '../../support/agentd-services.ts'
import { until } from '../../support/processes.ts'

export class TerminalViewer {
  readonly socket: Socket
  /** The end of what was shown. */
  shown = ''
  /** The received bytes. */
  bytes = 0
  readonly events: TerminalEvent[] = []

  private constructor(socket: Socket, head: Buffer) {
    this.socket = socket
    const frames = new FrameReader()
    const read = (chunk: Buffer) => {
      for (const frame of frames.push(chunk)) {
        if ('message' in frame) this.events.push(frame.message as TerminalEvent)
        else {
          this.bytes += frame.bytes.length
          this.shown = `${this.shown}${frame.bytes}`.slice(-100_000)
        }
      }
    }
    read(head)
    socket.on('data', read).on('error', () => {})
  }

  /** @throws Error with agentd's status and code if it refuses. */
  static async open(
    { port, headers }: Pick<ServedAgentd, 'port' | 'headers'>,
    query: Record<string, string | number> = {},
  ): Promise<TerminalViewer> {
    const path = `/v1/terminal?${new URLSearchParams(query as Record<string, string>)}`
    const asked = request({
      port,
      path,
      headers: { ...headers, connection: 'Upgrade', upgrade: TERMINAL_UPGRADE },
    })
    asked.end()
    return new Promise((resolve, reject) => {
      asked.once('error', reject)
      asked.once('upgrade', (_response, socket, head) => resolve(new TerminalViewer(socket as Socket, head)))
      asked.once('response', async (response) => {
        const { error, message } = JSON.parse(Buffer.concat(await response.toArray()).toString())
        reject(new Error(`${response.statusCode} ${error}: ${message}`))
      })
    })
  }

  type(text: string): void {
    this.socket.write(bytesFrames(Buffer.from(text)))
  }

  send(message: TerminalRequest): void {
    this.socket.write(messageFrame(message))
  }

  /** Resolves once a text was shown. */
  async sees(text: string | RegExp): Promise<void> {
    const isShown = () => (typeof text === 'string' ? this.shown.includes(text) : text.test(this.shown))
    await until(`${text} is shown`, isShown).catch((error) => {
      throw new Error(`${error.message} in ${JSON.stringify(this.shown.slice(-2000))}`)
    })
  }

  /** The event of a type, once it has arrived. */
  event<T extends TerminalEvent['type']>(type: T): Promise<TerminalEvent & { type: T }> {
    return until(
      `an event ${type}`,
      () => this.events.find((event) => event.type === type) as (TerminalEvent & { type: T }) | undefined,
    )
  }
}
