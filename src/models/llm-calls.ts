/**
 * Calls with an LLM key. The model gateway of the agent proxy serves them like an agent's, so that they reserve and
 * settle in the same way, also if a process is killed; `web` only passes the bytes on.
 */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import { bodyFrame, endToEnd, passBody } from '../../agentd/relay.ts'
import { type AgentProxyAddress, openTunnel } from '../agent-proxy/tunnel-client.ts'
import { unavailable } from '../errors.ts'
import { MODEL_HOST, MODEL_PORT } from '../lib/net/host-machine.ts'
import { gatewayPath, OPERATOR_PROVIDER } from '../model-providers.ts'

const PATH = `${gatewayPath({ id: OPERATOR_PROVIDER, dialect: 'openai' })}/chat/completions`
const FORWARDED = /^(accept|authorization|content-type|openai-beta|session_id|user-agent|x-session-affinity)$/
/** Longer than the gateway waits for a model. */
const IDLE_MS = 660_000

/**
 * Lets the model gateway answer a chat completion; resolves when its response has ended.
 * @param options.signal fires when the client has left.
 * @throws ApiError 503 if the agent proxy does not respond.
 */
export async function passToGateway(
  way: AgentProxyAddress,
  { req, res, signal }: { req: Request; res: Response; signal: AbortSignal },
): Promise<void> {
  const failed = (error: unknown) => {
    signal.throwIfAborted()
    throw unavailable('The model gateway does not answer', error)
  }
  const tunnel = await openTunnel(way, `${MODEL_HOST}:${MODEL_PORT}`).catch(failed)
  try {
    const answer = await ask(tunnel, req, signal).catch(failed)
    res.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers))
    await passBody(answer, res, { idleMs: IDLE_MS, signal })
  } finally {
    tunnel.destroy()
  }
}

async function ask(tunnel: Socket, req: Request, signal: AbortSignal): Promise<IncomingMessage> {
  // `Connection: close` would reset the connection if the gateway answers before the end of the body.
  const connection = 'keep-alive'
  const headers = { ...endToEnd(req.headers, (name) => FORWARDED.test(name)), ...bodyFrame(req), connection }
  const sent = request({
    ...{ method: 'POST', host: MODEL_HOST, path: PATH, headers, signal },
    createConnection: () => tunnel,
  })
  sent.setTimeout(IDLE_MS, () => sent.destroy())
  const response = once(sent, 'response')
  sent.on('error', () => {})
  req.pipe(sent)
  const [answer] = (await response) as [IncomingMessage]
  req.unpipe(sent)
  return answer
}
