import { z } from 'zod'
import { ApiError, contractError, messages, notFound } from '../../errors.ts'
import { nextPageHeaders, PAGED_BY_HEADER, paging, readPage } from '../../http/pages.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentOperationRoutes, agentRoutesOf } from '../agent-route.ts'
import { askAgent } from '../engine-call.ts'
import { readDiff } from './repository.ts'
import {
  diff,
  diffQuery,
  reset,
  resetBody,
  snapshotList,
  synced,
  syncing,
  syncStatus,
} from './snapshot-schema.ts'
import { findSnapshot, lastFailure, readHistory, SHOWN } from './snapshot-store.ts'

const TAG = 'Snapshots'
const agentRoute = agentRoutesOf(TAG)
const SNAPSHOTS = '/v0/agents/:agentId/snapshots'
const MAX_DIFF_BYTES = 262_144
const NETWORK_SETTING = 'BERTH_SNAPSHOT_NETWORK'
const failure = {
  statuses: {
    storage_not_configured: 400,
    snapshot_not_found: 404,
    ipfs_unreachable: 503,
    agent_not_ready: 503,
  },
}

/** The history of an agent's workspace (contract 4.3). */
export function snapshotRoutes({ pool, prisma, config, agentd, operations }: AgentServices): Route[] {
  const operationRoute = agentOperationRoutes(operations, TAG)
  const isConfigured = config.BERTH_SNAPSHOT_NETWORK !== 'none'

  /** @throws ApiError 400 if the settings disable snapshots. */
  function requireStorage(): void {
    if (isConfigured) return
    throw contractError(
      400,
      'storage_not_configured',
      messages.storageNotConfigured,
      `${NETWORK_SETTING} is none`,
    )
  }

  return [
    agentRoute({
      method: 'get',
      path: SNAPSHOTS,
      id: 'listSnapshots',
      summary: 'List the snapshots of an agent',
      description:
        `Newest first. ${PAGED_BY_HEADER} A reset adds its target snapshot again, so the first entry ` +
        'shows the workspace.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      query: z.object({ ...paging(SHOWN, 100) }),
      success: { description: 'The history.', body: snapshotList },
      async handle({ agent, query }) {
        const page = await readPage(query, (cursor) => readHistory(prisma, agent, cursor))
        const snapshots = page.items.map(({ id: _, ...snapshot }) => snapshot)
        return { ...nextPageHeaders(page), body: { agentId: agent.agentId, snapshots } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${SNAPSHOTS}/diff`,
      id: 'compareSnapshots',
      summary: 'Compare two snapshots of an agent',
      description:
        'The changes from `from` to `to`, whichever is older. The agent compares them in its repository, ' +
        'so it has to run; 409 if the repository no longer has one of them, for example after a restore.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      bound: 'agentFiles',
      query: diffQuery,
      success: { description: 'The difference.', body: diff },
      errors: [404, 409, 503],
      async handle({ agent, query, signal }) {
        const { from, to } = query
        const [a, b] = await Promise.all([findSnapshot(prisma, agent, from), findSnapshot(prisma, agent, to)])
        if (!a || !b) throw notFound(messages.snapshotNotFound)
        const commits = { from: a.commitSha, to: b.commitSha, max: MAX_DIFF_BYTES }
        const { text, truncated } = await askAgent(
          agent,
          'Failed to compare the snapshots',
          () => readDiff({ agentd, target: agent, signal }, commits),
          { not_found: commitGone },
        )
        return { body: { agentId: agent.agentId, from, to, diff: text, truncated } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${SNAPSHOTS}/sync`,
      id: 'getSyncStatus',
      summary: 'Check whether snapshots are enabled, and when the last one was taken',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The state of snapshots.', body: syncStatus },
      async handle({ agent }) {
        const { agentId, lastSync } = agent
        const status = { agentId, configured: isConfigured, lastSync }
        if (!isConfigured) {
          const message = messages.storageNotConfigured
          return { body: { ...status, missing: [NETWORK_SETTING], message } }
        }
        const failure = await lastFailure(pool, agent)
        const seconds = config.BERTH_INTERVALS.snapshots
        const message = failure
          ? `The last sync failed: ${failure}`
          : `A change is saved within about ${seconds} seconds while the agent runs`
        return { body: { ...status, message } }
      },
    }),
    operationRoute('agent.sync', {
      method: 'post',
      path: `${SNAPSHOTS}/sync`,
      id: 'syncAgent',
      summary: 'Save the workspace of an agent as a snapshot now',
      description:
        'Commits the changes, and pins the commit’s tree on IPFS. `leftOut` lists files that are not in ' +
        'it: files that `.gitignore` excludes, that have the name or content of a key or the value of a ' +
        'secret, or that git cannot store. A line with a file’s exact path in `.gitignore`, such as ' +
        '`!/workspace/tests/key.pem`, includes a file that only looks like a key. Without changes there is ' +
        'no new snapshot. 503 if IPFS or the agent cannot be reached.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      success: { description: 'The workspace is saved.', body: synced },
      pending: { description: 'The workspace is being saved.', body: syncing },
      failure,
      async begin({ agent }) {
        requireStorage()
        return {
          subject: agent,
          pending: { message: 'The snapshot is being taken' },
          done({ isNew, ...result }) {
            const message = isNew ? 'Snapshot taken' : 'Nothing has changed since the last snapshot'
            const details = result.leftOut.length > 0 && `Left out: ${result.leftOut.join('\n')}`
            return { message, ...result, ...(details && { details }) }
          },
        }
      },
    }),
    operationRoute('agent.reset', {
      method: 'post',
      path: `${SNAPSHOTS}/reset`,
      id: 'resetAgent',
      summary: 'Reset the workspace of an agent to a snapshot',
      description:
        'Only to a snapshot of its own history. Saves the current workspace as a snapshot first; ignored files stay. ' +
        'Then `build` and `start` run; the gateway keeps running. 503 if IPFS or the agent is unreachable.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: resetBody,
      invalidBody: messages.invalidSnapshotCid,
      success: { description: 'The workspace matches the snapshot.', body: reset },
      pending: { description: 'The workspace is being reset.' },
      failure,
      errors: [404],
      async begin({ agent, body: { snapshotCid } }) {
        const snapshot = await findSnapshot(prisma, agent, snapshotCid)
        if (!snapshot) throw notFound(messages.snapshotNotFound)
        requireStorage()
        const { commitSha } = snapshot
        const message = `Workspace is being reset to ${snapshotCid}`
        return {
          subject: agent,
          input: { snapshotCid },
          pending: { message, snapshotCid, commitSha },
          done: (result) => ({ message: `Workspace reset to ${snapshotCid}`, ...result }),
        }
      },
    }),
  ]
}

const commitGone = (cause: Error) =>
  new ApiError(409, 'snapshot_gone', 'The repository of the agent no longer has both snapshots', {
    cause,
  })
