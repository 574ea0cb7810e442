/** Conversations with an agent. */
import { randomUUID } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { type Berth, RequestError, serverEvents, unwrap } from '../../../typescript/src/index.ts'
import { type Call, command } from '../command.ts'
import { AdvisedError, EXIT, UsageError } from '../errors.ts'
import { agentIdOf } from '../find.ts'
import { MarkdownWriter } from '../markdown.ts'
import { Progress } from '../progress.ts'
import { streamOf } from '../stream.ts'
import { harmless, isTerminal, paint } from '../terminal.ts'

const OPTIONS = {
  conversation: { about: 'continue this conversation', value: 'id' },
  continue: { about: 'continue the newest conversation', short: 'c' },
} as const

export const chatCommands = [
  command({
    name: 'agents chat',
    summary: 'talk to an agent: one message, or a conversation in the terminal',
    usage: '<agent> [message...]',
    options: OPTIONS,
    more: `Without a message, it asks for messages until Ctrl-D; Ctrl-C stops a reply. If stdin is not
a terminal, it is the message. In a terminal the reply is rendered; elsewhere it is Markdown.

  berth agents chat Researcher
  berth agents chat Researcher 'What changed in the workspace?'
  git diff | berth agents chat Researcher --json | jq -r .reply`,
    async run(call) {
      const { berth, args, json } = call
      const agentId = await agentIdOf(berth, args[0])
      const conversationId = await conversationOf(berth, agentId, call.options)
      const isTyped = args.length === 1 && process.stdin.isTTY === true
      if (isTyped && json) throw new UsageError('--json needs a message')
      if (isTyped) return converse(berth, agentId, conversationId)
      const message = args.length > 1 ? args.slice(1).join(' ') : await text(process.stdin)
      if (message.trim() === '') throw new UsageError('the message is empty')
      const { reply, state, calls } = await say(
        { berth, agentId, conversationId, isQuiet: json },
        message,
        call,
      )
      return json ? { data: { conversationId, reply, state, toolCalls: calls }, text: '' } : undefined
    },
  }),
]

async function conversationOf(
  berth: Berth,
  agentId: string,
  options: Call<typeof OPTIONS>['options'],
): Promise<string> {
  if (options.conversation) return options.conversation
  if (!options.continue) return randomUUID()
  const path = { agentId }
  const { conversations } = await unwrap(
    berth.GET('/v0/agents/{agentId}/conversations', { params: { path } }),
  )
  const [newest] = conversations
  if (!newest) throw new AdvisedError('there is no conversation yet', 'leave --continue out', EXIT.missing)
  return newest.conversationId
}

interface Place {
  berth: Berth
  agentId: string
  conversationId: string
  /** Collects the reply instead of printing it. */
  isQuiet: boolean
}

interface Reply {
  reply: string
  state: string
  calls: string[]
}

/** Sends a message, and prints the reply as it arrives. @throws RequestError if there is none. */
async function say(place: Place, message: string, { signal }: Pick<Call, 'signal'>): Promise<Reply> {
  const { berth, agentId, conversationId, isQuiet } = place
  // Shown until the reply begins, and while tools run.
  const waiting = new Waiting(isQuiet)
  using _ = waiting
  const body = await unwrap(
    berth.POST('/v0/agents/{agentId}/conversations/{conversationId}/messages', {
      params: { path: { agentId, conversationId } },
      body: { text: message },
      parseAs: 'stream',
      signal,
    }),
  )
  const printer = isQuiet ? undefined : new ReplyPrinter()
  const texts = new Map<string, string>()
  const calls: string[] = []
  for await (const { name, data } of serverEvents(streamOf(body))) {
    const event = JSON.parse(data)
    waiting.stop()
    if (name === 'text') {
      const before = event.replace ? '' : (texts.get(event.item) ?? '')
      texts.set(event.item, before + event.text)
      printer?.text(event.item, texts.get(event.item) ?? '')
    }
    if (name === 'message') {
      for (const { name, arguments: given } of event.toolCalls ?? []) {
        calls.push(name)
        printer?.tool(name, given)
        waiting.start(name)
      }
    }
    if (name === 'error' || (name === 'end' && event.state === 'failed')) {
      printer?.end()
      throw new RequestError(name === 'error' ? 503 : 500, event.error || 'the reply failed')
    }
    if (name === 'end') {
      printer?.end()
      return { reply: Array.from(texts.values()).join('\n\n'), state: event.state, calls }
    }
  }
  printer?.end()
  throw new AdvisedError(
    'the connection ended before the reply',
    `continue with --conversation ${conversationId}`,
  )
}

/** A line that shows that the agent works. */
class Waiting implements Disposable {
  readonly #isQuiet: boolean
  #progress: Progress | undefined
  constructor(isQuiet: boolean) {
    this.#isQuiet = isQuiet
    this.start('thinking')
  }
  start(what: string): void {
    this.stop()
    if (!this.#isQuiet) this.#progress = new Progress(what)
  }
  stop(): void {
    this.#progress?.[Symbol.dispose]()
    this.#progress = undefined
  }
  [Symbol.dispose](): void {
    this.stop()
  }
}

/** Prints the parts of a reply. The engine sends each part's text as it grows. */
class ReplyPrinter {
  #writer: MarkdownWriter | undefined
  #item: string | undefined
  #printed = ''

  text(item: string, whole: string): void {
    if (item !== this.#item) {
      this.end()
      this.#item = item
      this.#writer = new MarkdownWriter()
    }
    // A part that was replaced by another text is printed again below.
    if (!whole.startsWith(this.#printed)) {
      this.#finish()
      this.#writer = new MarkdownWriter()
    }
    this.#writer?.write(whole.slice(this.#printed.length))
    this.#printed = whole
  }

  tool(name: string, given: string): void {
    this.end()
    if (!isTerminal()) return
    const room = Math.max(20, (process.stdout.columns || 80) - name.length - 6)
    console.log(paint('dim', `  ⚙ ${harmless(name)} ${harmless(given).slice(0, room)}`))
  }

  end(): void {
    this.#finish()
    this.#item = undefined
  }

  #finish(): void {
    this.#writer?.end()
    if (this.#printed !== '' && !isTerminal() && !this.#printed.endsWith('\n')) process.stdout.write('\n')
    this.#writer = undefined
    this.#printed = ''
  }
}

/** Asks for messages until Ctrl-D. Ctrl-C stops a reply, or ends if there is none. */
async function converse(berth: Berth, agentId: string, conversationId: string): Promise<undefined> {
  const params = { path: { agentId, conversationId } }
  const place = { berth, agentId, conversationId, isQuiet: false }
  const { createInterface } = await import('node:readline/promises')
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  let isReplying = false
  process.removeAllListeners('SIGINT')
  terminal.on('SIGINT', () => {
    if (!isReplying) return terminal.close()
    // The stream ends with the state `stopped`.
    berth.POST('/v0/agents/{agentId}/conversations/{conversationId}/stop', { params }).catch(() => {})
  })
  // Ctrl-D, also during a reply, which then continues in the agent.
  const left = new AbortController()
  const closed = new Promise<undefined>((resolve) => {
    terminal.once('close', () => {
      left.abort()
      resolve(undefined)
    })
  })
  while (!left.signal.aborted) {
    const message = await Promise.race([terminal.question(paint('bold', '› ')), closed])
    if (message === undefined) break
    if (message.trim() === '') continue
    isReplying = true
    console.log()
    try {
      const { state } = await say(place, message, left)
      if (state === 'stopped') console.log(paint('dim', '(stopped)'))
    } catch (error) {
      if (left.signal.aborted) break
      if (!(error instanceof RequestError)) throw error
      console.error(`${paint('red', 'error:', process.stderr)} ${harmless(error.message)}`)
    }
    console.log()
    isReplying = false
  }
  console.log(paint('dim', `\nberth agents chat ${agentId} --conversation ${conversationId}`))
}
