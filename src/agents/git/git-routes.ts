import { z } from 'zod'
import { MANIFEST_SCHEMA } from '../../../agentd/manifest-schema.ts'
import { unauthorized } from '../../errors.ts'
import { requireScope } from '../../http/admission.ts'
import { like } from '../../http/fields.ts'
import { type Context, type Route, routesOf } from '../../http/route.ts'
import { CLOSE } from '../../lib/net/websocket.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { SINCE_UNKNOWN } from '../connections.ts'
import { readRepository } from '../snapshots/index.ts'
import { passGit } from './pass.ts'

const TAG = 'Git'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const GIT = '/v0/agents/:agentId/git'
/** `git clone` names its folder after the last part of the URL: here the agent's id. */
const SHORT = '/v0/agents/:agentId.git'

const UPLOAD_PACK = 'git-upload-pack'
const RECEIVE_PACK = 'git-receive-pack'
type GitService = typeof UPLOAD_PACK | typeof RECEIVE_PACK

const PUSHED_MS = 20_000

/** The agent's repository over git's smart HTTP (gitprotocol-http). */
export function gitRoutes({ agentd, connections, operations }: AgentServices): Route[] {
  type Asked = Pick<Context<unknown, unknown, unknown>, 'principal' | 'req' | 'res' | 'signal'> & {
    agent: Agent
  }

  /** @param more arguments of passGit after the exchange. */
  async function pass(
    { principal, agent, req, res, signal }: Asked,
    ...more: [path: string, contentType: string, beforeEnd?: () => Promise<void>]
  ): Promise<undefined> {
    const stopped = new AbortController()
    const forget = connections.add(agent, principal, SINCE_UNKNOWN, (code) => {
      // On shutdown the server lets responses finish.
      if (code !== CLOSE.goingAway)
        stopped.abort(unauthorized('The token or key is no longer valid', 'bad_token'))
    })
    try {
      await passGit({ agentd, agent, req, res, signal: AbortSignal.any([signal, stopped.signal]) }, ...more)
    } finally {
      forget()
    }
  }

  /** Enqueues the operation that applies a push, even if the client has disconnected: agentd has recorded the push. */
  async function takePushed({ principal, agent, req }: Asked): Promise<void> {
    try {
      const { pushed } = await readRepository({ agentd, target: agent }, AbortSignal.timeout(PUSHED_MS))
      const signal = AbortSignal.timeout(PUSHED_MS)
      if (pushed === null) return
      await operations.start('agent.push', agent, { principal, prefer: { waitMs: 0 }, signal })
    } catch (error) {
      // The agent's next sync also finds the push, a little later.
      req.log.warn({ err: error, agentId: agent.agentId }, 'a push waits to be applied')
    }
  }

  const exchange = (service: GitService, summary: string, description: string): Route =>
    agentRoute({
      method: 'post',
      path: `${GIT}/${service}`,
      aliases: [`${SHORT}/${service}`],
      id: service === UPLOAD_PACK ? 'gitUploadPack' : 'gitReceivePack',
      summary,
      description,
      scope: service === UPLOAD_PACK ? 'org:agents:read' : 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: service === UPLOAD_PACK ? 'gitReads' : 'gitPushes',
      basic: true,
      stream: { mediaType: `application/x-${service}-request`, schema: like('0014command=ls-refs\n0000') },
      success: {
        description: 'In git’s own format.',
        mediaType: `application/x-${service}-result`,
        body: like('0008NAK\n0000'),
      },
      errors: [502, 504],
      handle: (asked) =>
        pass(
          asked,
          `/${service}`,
          `application/x-${service}-result`,
          service === RECEIVE_PACK ? () => takePushed(asked) : undefined,
        ),
    })

  return [
    agentRoute({
      method: 'get',
      path: `${GIT}/info/refs`,
      aliases: [`${SHORT}/info/refs`],
      id: 'gitRefs',
      summary: 'The first request of `git clone`, `git fetch` and `git push`',
      description:
        '`git clone https://x:<gateway token>@<this host>/v0/agents/<agentId>.git`. A push also needs ' +
        '`org:agents:write`.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'gitReads',
      basic: true,
      query: z.object({
        service: z
          .enum([UPLOAD_PACK, RECEIVE_PACK], `must be ${UPLOAD_PACK} or ${RECEIVE_PACK}`)
          .describe('To fetch, or to push.'),
      }),
      success: {
        description: 'The branches, in git’s own format.',
        mediaType: '*/*',
        body: like('001e# service=git-upload-pack\n0000'),
      },
      errors: [502, 504],
      handle({ query: { service }, ...asked }) {
        if (service === RECEIVE_PACK) requireScope(asked.principal, ['org:agents:write'])
        return pass(asked, `/info/refs?service=${service}`, `application/x-${service}-advertisement`)
      },
    }),
    exchange(UPLOAD_PACK, 'Send the objects that a clone or a fetch needs', 'Used by git itself.'),
    exchange(
      RECEIVE_PACK,
      'Receive a push to `main`',
      'Used by git itself. The agent’s own changes are committed first. A push is refused if it does not ' +
        'build on them, or if its `manifest.json` is invalid. Afterwards an operation `agent.push` applies ' +
        'the manifest and runs `build` and `start`.',
    ),
  ]
}

/** The JSON Schema of `manifest.json`. Editors read it from the URL in `$schema`. */
export function manifestRoutes(): Route[] {
  return [
    route({
      method: 'get',
      path: '/schemas/manifest.v1.json',
      id: 'manifestSchema',
      summary: 'The JSON Schema of manifest.json',
      description:
        'Pushes are validated against it. In addition, no two entries of a list may share a name, path or CID.',
      scope: null,
      origins: 'any',
      success: { description: 'The schema.', body: z.looseObject({}) },
      handle: async () => ({ body: MANIFEST_SCHEMA }),
    }),
  ]
}
