/** The official A2A client, for an agent on the API's host. */

import { randomUUID } from 'node:crypto'
import { type AgentCard, Role, type SendMessageRequest } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client'
import type { Client as ApiClient } from './client.ts'

interface Options {
  /** Only this version of the protocol. */
  version?: '1.0' | '0.3'
  fetchImpl?: typeof fetch
}

/** A client that finds the agent by its card. */
export async function a2aClient(
  { url, key }: Pick<ApiClient, 'url' | 'key'>,
  path: string,
  { version = '1.0', fetchImpl = fetch }: Options = {},
): Promise<Client> {
  const legacyCompat = { enabled: version === '0.3' }
  const asked: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('authorization', `Bearer ${key}`)
    // As a client that knows nothing newer.
    if (version === '0.3') headers.delete('a2a-version')
    return fetchImpl(input, { ...init, headers })
  }
  const resolver = new DefaultAgentCardResolver({ fetchImpl: asked, legacyCompat })
  const resolved = await resolver.resolve(`${url}${path}/`, '.well-known/agent-card.json')
  const supportedInterfaces = resolved.supportedInterfaces.filter((one) => one.protocolVersion === version)
  const card: AgentCard = { ...resolved, supportedInterfaces }
  const transports = [new JsonRpcTransportFactory({ fetchImpl: asked, legacyCompat })]
  return new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, cardResolver: resolver }),
  ).createFromAgentCard(card)
}

/** A message with a text. */
export const say = (
  text: string,
  more: { contextId?: string; taskId?: string; now?: boolean } = {},
): SendMessageRequest => ({
  tenant: '',
  metadata: undefined,
  configuration: {
    acceptedOutputModes: [],
    taskPushNotificationConfig: undefined,
    returnImmediately: more.now ?? false,
  },
  message: {
    messageId: randomUUID(),
    contextId: more.contextId ?? '',
    taskId: more.taskId ?? '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
})
