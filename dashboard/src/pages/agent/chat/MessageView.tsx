import { Markdown } from '../../../parts/markdown.tsx'
import { Time } from '../../../parts/time.tsx'
import { texts } from '../../../texts.ts'
import type { CallState, Message } from './conversation.ts'

const words = texts.chat

/** A message from a person. */
export function Said({ text, time }: { text: string; time?: string | null }) {
  return (
    <li className="flex flex-col items-end gap-1">
      <span className="sr-only">{words.you}</span>
      <p className="max-w-[85%] whitespace-pre-wrap break-words rounded-2xl rounded-br-md bg-tint px-4 py-2.5 text-sm">
        {text}
      </p>
      {time && <Time at={time} className="text-soft text-xs" />}
    </li>
  )
}

/** A message from the agent, still arriving or from the history. */
export function Answer({
  text,
  time,
  isError = false,
}: {
  text: string
  time?: string | null
  isError?: boolean
}) {
  return (
    <li className={isError ? 'rounded-lg border border-bad p-3' : ''}>
      <span className="sr-only">{words.agent}</span>
      <Markdown text={text} />
      {time && <Time at={time} className="text-soft text-xs" />}
    </li>
  )
}

/** A folded tool call: its arguments and its result. The engine sends the result at the end of the reply. */
export function ToolCall({
  call,
  result,
  state,
}: {
  call: Message['toolCalls'][number]
  result: Message | undefined
  /** The state of the call before its result arrives; undefined if unknown. */
  state: CallState | undefined
}) {
  const now = result ? (result.isError ? 'failed' : 'done') : state
  return (
    <li>
      <details className="group rounded-lg border border-line bg-page text-sm">
        <summary className="flex cursor-pointer items-center gap-3 rounded-lg px-3 py-2 hover:text-accent">
          <span aria-hidden className="text-soft text-xs group-open:rotate-90 motion-safe:transition">
            ▶
          </span>
          <span className="font-medium">{call.name}</span>
          <code className="min-w-0 flex-1 truncate text-soft text-xs">{brief(call.arguments)}</code>
          {now && <span className={`text-xs ${TONES[now]}`}>{WORDS[now]}</span>}
        </summary>
        <div className="space-y-2 border-line border-t p-3">
          <Output label={words.toolAsked} text={indented(call.arguments)} />
          {result && <Output label={words.toolResult} text={result.text || words.toolNothing} />}
        </div>
      </details>
    </li>
  )
}

const WORDS: Record<CallState, string> = {
  running: words.toolRuns,
  done: words.toolDone,
  failed: words.toolFailed,
}
const TONES: Record<CallState, string> = { running: 'text-busy', done: 'text-good', failed: 'text-bad' }

function Output({ label, text }: { label: string; text: string }) {
  return (
    <div>
      <p className="mb-1 text-soft text-xs">{label}</p>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard
        tabIndex={0}
        className="max-h-72 overflow-auto whitespace-pre-wrap break-words rounded bg-card p-2 text-xs"
      >
        {text}
      </pre>
    </div>
  )
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}

/** The only string among the arguments, or all arguments. */
function brief(json: string): string {
  const given = parsed(json)
  const values = typeof given === 'object' && given !== null ? Object.values(given) : []
  const [only, ...more] = values.filter((value) => typeof value === 'string')
  return only !== undefined && more.length === 0 ? only : json
}

function indented(json: string): string {
  const given = parsed(json)
  return typeof given === 'string' ? given : JSON.stringify(given, null, 2)
}
