import { AgentdError } from './errors.ts'
import { GatewayClient } from './gateway-client.ts'
import type { RpcRequest } from './protocol.ts'
import type { Agent, Service } from './server.ts'

const MAX_TIMEOUT_MS = 600_000
/** A task's text, a configuration; the gateway takes frames of 26 MB. */
const REQUEST_BYTES = 8_388_608

/** `POST /v1/rpc`: any method of the gateway. A refusal of the engine is an answer (`ok: false`), with status 200. */
export function rpcService({ gateway }: Agent): Service {
  const client = new GatewayClient(gateway)
  return {
    routes: [
      {
        method: 'POST',
        path: '/v1/rpc',
        async handle(call) {
          const { method, params, timeoutMs } = check(await call.json<RpcRequest>(REQUEST_BYTES))
          return { body: await client.call(method, params, timeoutMs) }
        },
      },
    ],
    async stop() {
      client.close()
    },
  }
}

function check(request: RpcRequest): RpcRequest {
  const { method, params, timeoutMs } = request ?? {}
  if (typeof method !== 'string' || method === '' || method === 'connect')
    throw new AgentdError('bad_request', 'method: must be a method of the gateway')
  if (typeof params !== 'object' || params === null || Array.isArray(params))
    throw new AgentdError('bad_request', 'params: must be an object')
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw new AgentdError('bad_request', `timeoutMs: must be 1 to ${MAX_TIMEOUT_MS}`)
  return request
}
