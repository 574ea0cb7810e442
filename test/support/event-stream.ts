/** A client of `GET /v0/events`: server-sent events as they arrive. */
import { until } from './processes.ts'

export interface Received {
  id: string
  type: string
  createdAt: string
  workspaceId: string
  resource: { type: string; id: string }
  data: Record<string, unknown>
}

export class EventReader {
  /** All events so far. */
  readonly events: Received[] = []
  /** The id from which it would resume. */
  lastId = ''
  #isEnded = false
  readonly #abort = new AbortController()

  /** Opens a stream. @throws unless the status is 200 and the stream has begun. */
  static async open(
    { url, key }: { url: string; key?: string | undefined },
    query = '',
    headers: Record<string, string> = {},
  ): Promise<EventReader> {
    const reader = new EventReader()
    const response = await fetch(`${url}/v0/events?${query}`, {
      headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers },
      signal: reader.#abort.signal,
    })
    if (response.status !== 200 || !response.body)
      throw new Error(`${response.status} ${await response.text()}`)
    reader.#read(response.body).catch(() => {
      reader.#isEnded = true
    })
    // The first id marks its start: changes from now on will arrive.
    await until('the stream has begun', () => reader.lastId !== '')
    return reader
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    let rest = ''
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + text).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
        const data = field('data')
        this.lastId = field('id') ?? this.lastId
        if (data !== undefined) this.events.push(JSON.parse(data))
      }
    }
    this.#isEnded = true
  }

  /** Resolves when this many events have arrived in all. */
  async has(count: number): Promise<Received[]> {
    await until(`${count} events came`, () => this.events.length >= count)
    return this.events
  }

  /** Resolves when the server has ended it. */
  async ended(): Promise<void> {
    await until('the stream has ended', () => this.#isEnded)
  }

  stop(): void {
    this.#abort.abort()
  }
}
