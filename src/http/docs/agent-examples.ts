/** Examples for the routes of an agent's lifecycle, secrets and tokens; see `examples.ts`. */
import { messages } from '../../errors.ts'
import type { Example } from './example.ts'

const USER = '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60'
const OPERATION = '0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41'
const SECRET = '0193a1c8-22d4-7b60-8c1e-5a9f40c7e2d3'
const AGENT = 'x7f3k2ab'

const disk = { usedBytes: 14_155_776, limitBytes: 10_737_418_240, hardLimit: true }
const secret = {
  id: SECRET,
  userId: USER,
  name: 'OPENAI_API_KEY',
  type: 'secret',
  createdAt: '2026-11-21T11:05:12.418Z',
  updatedAt: '2026-11-21T11:05:12.418Z',
}
const agent = {
  agentId: AGENT,
  userId: USER,
  name: 'Librarian',
  description: 'Keeps the catalogue.',
  vibe: null,
  emoji: null,
  gatewayToken: '5b0c1f0e-6c1d-4f0b-9a53-0c9f2f6d1a77',
  createdAt: '2026-11-21T11:04:48.230Z',
  updatedAt: '2026-11-21T11:05:31.902Z',
  status: 'running',
  statusReason: null,
  lastSync: null,
  snapshotCid: null,
  fileManifest: null,
  snapshotsUpdatedAt: null,
  engine: 'openclaw',
  agentVersion: '2026.9.6',
}
const gatewayToken = {
  token: agent.gatewayToken,
  wsUrl: `wss://${AGENT}.agents.example`,
  baseUrl: `https://${AGENT}.agents.example`,
}

const deletedAgent = {
  success: true,
  message: `Agent ${AGENT} deleted`,
  wasInRegistry: true,
  r2ObjectsDeleted: 0,
}
const pending = { operation: { id: OPERATION, state: 'running' } }
const script = {
  state: 'success',
  exitCode: 0,
  startedAt: '2026-11-21T11:05:32.118Z',
  finishedAt: '2026-11-21T11:05:40.733Z',
}
const versions = {
  availableVersions: ['2026.9.6', '2026.9.5'],
  availableVersionsPerEngine: { openclaw: ['2026.9.6', '2026.9.5'] },
}
const updatedAgent = { success: true, previousVersion: '2026.9.5', newVersion: '2026.9.6' }

export const agentExamples: Record<string, Example> = {
  listSecrets: {
    response: {
      secrets: [{ ...secret, agents: [{ agentId: AGENT, name: 'Librarian' }] }],
      secretLimit: null,
    },
  },
  createSecret: {
    request: { name: 'OPENAI_API_KEY', value: 'sk-proj-…' },
    response: { success: true, secret },
  },
  updateSecret: { request: { value: 'sk-proj-…' }, response: { success: true, secret } },
  deleteSecret: { response: { success: true } },
  listAgentSecrets: {
    response: {
      secrets: [
        {
          id: SECRET,
          name: secret.name,
          createdAt: secret.createdAt,
          updatedAt: secret.updatedAt,
          synced: true,
        },
      ],
    },
  },
  attachSecrets: {
    request: { secretIds: [SECRET] },
    response: {
      success: true,
      attached: 1,
      message: 'The agent restarts to get them',
      operation: { id: OPERATION, state: 'queued' },
    },
  },
  detachSecret: { response: { success: true } },
  createAgent: {
    request: {
      name: 'Librarian',
      description: 'Keeps the catalogue.',
      templateId: 'assistant',
      secretIds: [SECRET],
    },
    response: { success: true, agent },
    failures: {
      500: {
        error: messages.gatewayFailed,
        agent: { ...agent, status: 'not_running', statusReason: 'the gateway was not ready in time' },
      },
    },
  },
  listAgents: { response: { agents: [agent], agentLimit: 10, timeCredits: null } },
  getAgent: {
    response: {
      agent,
      processStatus: 'running',
      processId: '31',
      disk,
      skills: [
        {
          agentId: AGENT,
          skillId: '0193a1c9-6b3f-7c04-a5d2-1e8f7b9c0d34',
          skillCid: 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
          attachedAt: '2026-11-21T11:04:48.230Z',
          name: 'catalogue',
          description: 'Finds books by title, author and shelf.',
          version: '1.2.0',
          slug: null,
        },
      ],
      secrets: [
        {
          id: SECRET,
          name: secret.name,
          createdAt: secret.createdAt,
          updatedAt: secret.updatedAt,
          synced: true,
        },
      ],
      snapshots: [
        {
          agentId: AGENT,
          snapshotCid: 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
          userId: USER,
          commitSha: '4f2d9c1b7a3e5d608c9b1e2f3a4d5c6b7a8f9e01',
          changeSummary: '1 changed',
          contentDiff: null,
          createdAt: '2026-11-21T11:20:41.377Z',
        },
      ],
      portForwarding: [{ port: 4180, pathPrefix: '/page', protected: false }],
    },
  },
  deleteAgent: { response: deletedAgent, others: { 202: { ...deletedAgent, ...pending } } },
  getAgentStatus: {
    response: {
      agentId: AGENT,
      status: 'running',
      statusReason: null,
      engine: 'openclaw',
      agentVersion: '2026.9.6',
      reachable: true,
      startedAt: '2026-11-21T11:05:20.405Z',
      gateway: {
        state: 'ready',
        pid: 31,
        restarts: 0,
        exitCode: null,
        reason: null,
        outOfMemory: null,
        lastLines: [],
      },
      scripts: {
        build: script,
        start: { ...script, state: 'running', exitCode: null, finishedAt: null },
      },
      skillProblems: [{ name: 'notes', message: 'skills/notes is not as Berth has put it there' }],
      disk,
    },
  },
  restartAgent: {
    request: { version: '2026.9.6' },
    response: { success: true, message: `Agent ${AGENT} restarted`, previousProcessId: '31' },
    others: { 202: { success: true, message: `Agent ${AGENT} is being restarted`, ...pending } },
  },
  retryScripts: {
    response: { success: true, message: 'Scripts launched' },
    others: { 202: { success: true, message: 'Scripts are being launched', ...pending } },
  },
  readAgentLogs: {
    response: {
      logs: '2026-11-21T10:58:07.120Z INFO gateway/ws listening on 127.0.0.1:18789\n2026-11-21T10:58:09.481Z INFO script/build done',
    },
  },
  listAgentVersions: {
    response: { engine: 'openclaw', currentVersion: '2026.9.5', ...versions },
  },
  getAgentUpdate: {
    response: { currentVersion: '2026.9.5', latestVersion: '2026.9.6', updateAvailable: true },
  },
  updateAgent: {
    request: { tag: 'latest' },
    response: { ...updatedAgent, output: 'Restarted on 2026.9.6' },
    others: { 202: { ...updatedAgent, output: 'Restarting on 2026.9.6', ...pending } },
  },
  findModels: {
    response: {
      data: {
        hasDefault: false,
        local: [{ server: 'ollama', name: 'Ollama', models: ['qwen3:8b', 'llama3.2:3b'] }],
      },
    },
  },
  listEngines: { response: { engines: [{ id: 'openclaw', label: 'OpenClaw' }] } },
  listEngineVersions: { response: versions },
  getGatewayToken: { response: gatewayToken },
  rotateGatewayToken: { response: gatewayToken },
  createPlatformToken: {
    response: { token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4N2YzazJhYiJ9.c2lnbmF0dXJl' },
  },
  whoami: {
    response: {
      agentId: AGENT,
      name: 'Librarian',
      status: 'running',
      userId: USER,
      workspaceId: '0193a1bf-02b1-7a44-8b0d-93c2f1a5d7e8',
      tokenKind: 'gateway',
    },
  },
  changeMetadata: {
    request: { vibe: 'quiet and exact', emoji: '📚' },
    response: { success: true, agent: { ...agent, vibe: 'quiet and exact', emoji: '📚' } },
  },
}
