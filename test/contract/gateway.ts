/** Gateways of the contract suite's workspaces. */
import assert from 'node:assert/strict'
import { type GatewayReader, gatewayReader } from '../support/gateway.ts'
import type { Context, Workspace } from './context.ts'

/** A reader at a new gateway of a workspace, which has no plugins and is open to everyone. */
export async function openGateway(
  { url }: Context,
  { api }: Workspace,
): Promise<GatewayReader & { id: string }> {
  const domain = `test-${crypto.randomUUID().slice(0, 13)}`
  const { status, body } = await api.post('/v3/gateways', { domain })
  assert.equal(status, 200, JSON.stringify(body))
  return { id: body.data.id, ...gatewayReader(url, `${body.data.host}:${new URL(url).port}`) }
}
