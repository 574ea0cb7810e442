/** The engine's events about a Berth's containers, for as long as somebody listens. */
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { AGENT_LABEL, isLabelled, LABELLED } from '../names.ts'
import type { Owner } from '../owner.ts'
import type { SandboxEvent } from '../port.ts'
import type { DockerEngine } from './engine.ts'

const RETRY_MS = 1000
const TYPES: Record<string, SandboxEvent['type']> = { start: 'started', die: 'exited', destroy: 'removed' }

/** Yields until `signal` fires. Reconnects after the engine was away; events in between are lost. */
export async function* dockerEvents(
  engine: DockerEngine,
  owner: Owner,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent> {
  while (!signal.aborted) {
    try {
      yield* listen(engine, owner, signal)
    } catch {
      // Docker is away. Callers that need it notice through their own calls.
    }
    await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
  }
}

async function* listen(
  engine: DockerEngine,
  owner: Owner,
  signal: AbortSignal,
): AsyncGenerator<SandboxEvent> {
  const filters = { ...LABELLED, type: ['container' as const], event: Object.keys(TYPES) }
  const stream = await engine.call('events', { signal }, (docker) => docker.getEvents({ filters }))
  const readable = (stream as Readable).setEncoding('utf8')
  const end = () => readable.destroy()
  signal.addEventListener('abort', end, { once: true })
  try {
    let rest = ''
    for await (const chunk of readable) {
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const event = parse(line, owner)
        if (event) yield event
      }
    }
  } finally {
    signal.removeEventListener('abort', end)
    readable.destroy()
  }
}

function parse(line: string, owner: Owner): SandboxEvent | undefined {
  try {
    const { Action, Actor } = JSON.parse(line) as {
      Action?: string
      Actor?: { Attributes?: Record<string, string> }
    }
    const [type, agentId] = [TYPES[Action ?? ''], Actor?.Attributes?.[AGENT_LABEL]]
    if (!isLabelled(owner, Actor?.Attributes)) return undefined
    return type && agentId ? { type, agentId } : undefined
  } catch {
    return undefined
  }
}
