/** Forwards git between a client and an agent: packs are streamed in both directions, whatever their size. */
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import { endToEnd } from '../../../agentd/relay.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../agent.ts'
import type { AgentdClient } from '../agentd-client.ts'
import { askToPassOn } from '../engine-call.ts'

/** The longest silence: packing or unpacking a repository of gigabytes may take minutes without a byte. */
const IDLE_MS = 600_000
/** The longest timer: a response begins only after the whole pack was sent, which may take long. */
const NO_LIMIT_MS = 2 ** 31 - 1

/** The request headers that agentd needs; credentials are not forwarded. */
const REQUEST_HEADERS = /^(accept|content-(type|length|encoding)|git-protocol)$/

export interface GitExchange {
  agentd: AgentdClient
  agent: Agent
  req: Request
  res: Response
  /** Ends the exchange: the client has disconnected, or its token has become invalid. */
  signal: AbortSignal
}

/**
 * Forwards a request to the agent's git, and returns the response.
 * @param path below `/v1/git`.
 * @param contentType of the response, whatever agentd says, so that no browser shows it as a page.
 * @param beforeEnd called when the agent's response is complete or cut off, before the client sees its end.
 * @throws ApiError 502, 503 or 504, unless a response has begun.
 */
export async function passGit(
  { agentd, agent, req, res, signal }: GitExchange,
  path: string,
  contentType: string,
  beforeEnd?: () => Promise<void>,
): Promise<void> {
  const idle = new AbortController()
  const late = () => idle.abort(new ApiError(504, 'timeout', 'No data was transferred for too long'))
  const timer = setTimeout(late, IDLE_MS)
  const moving = () =>
    new Transform({
      transform(chunk, _encoding, done) {
        timer.refresh()
        done(null, chunk)
      },
    })
  const ended = AbortSignal.any([signal, idle.signal])
  let hasBegun = false
  try {
    const response = await askToPassOn(agent, () =>
      agentd.stream(agent, {
        method: req.method,
        path: `/v1/git${path}`,
        ...(req.method === 'POST' && { body: forward(req, moving()) }),
        headers: endToEnd(req.headers, (name) => REQUEST_HEADERS.test(name)),
        timeoutMs: NO_LIMIT_MS,
        signal: ended,
      }),
    )
    hasBegun = true
    res.status(200).set({ 'Content-Type': contentType, 'Cache-Control': 'no-cache, no-store' })
    await pipeline(response, moving(), res, { end: false, signal: ended }).catch(() => res.destroy())
  } finally {
    clearTimeout(timer)
    // The client may have received the whole response before it left.
    if (hasBegun || ended.aborted) await beforeEnd?.()
  }
  res.end()
}

/** The body; it ends in an error if the client's body does. */
function forward(req: Request, moving: Transform): Transform {
  pipeline(req, moving).catch(() => {})
  return moving
}
