/** Examples for the routes that an agent's agentd and engine handle; see `examples.ts`. */
import type { Example } from './example.ts'

const JOB = 'c16e2a5d-7d81-430d-a96b-8dfb5b60c277'
const PAIRING = '683619e4-3515-4229-9c58-05e77bc17d85'
const CREATED_MS = 1_795_281_866_768
const CONFIG =
  '{\n  "agents": {\n    "defaults": {\n      "model": { "primary": "berth/default" }\n    }\n  }\n}\n'

const device = {
  deviceId: '334e41ae88807321775fd2e6309ce4acdc1666544cac1339c57b7994a3262594',
  publicKey: 'PX2gnBxN_0WQLJ7SKSb1ka2fs0_194_kAM3569_gbKc',
  platform: 'linux',
  clientId: 'cli',
  clientMode: 'cli',
  role: 'operator',
  roles: ['operator'],
  scopes: ['operator.read', 'operator.write'],
}

const job = {
  id: JOB,
  name: 'Morning report',
  enabled: true,
  createdAtMs: CREATED_MS,
  updatedAtMs: CREATED_MS,
  schedule: { kind: 'cron', expr: '0 9 * * *', tz: 'Europe/Berlin' },
  sessionTarget: 'isolated',
  wakeMode: 'now',
  payload: { kind: 'agentTurn', message: 'Sum up what came in over night.', timeoutSeconds: 300 },
  delivery: { mode: 'none' },
  state: { nextRunAtMs: 1_795_334_400_000 },
}

const run = {
  ts: 1_795_334_404_210,
  jobId: JOB,
  action: 'finished',
  status: 'ok',
  summary: 'Three letters, one of them urgent.',
  runAtMs: 1_795_334_400_004,
  durationMs: 4206,
}

const restarting = { id: '0193a1c4-7d2e-7b1a-9c55-3f0e6a2b8d41', state: 'running' }

const CONVERSATION = '7d0f3a52-90c4-4c1e-8a57-2b6f1d9e0c34'
const spoken = { toolCalls: [], toolCallId: null, isError: false }
const question = {
  id: '4b3c0f6a-2f1d-4d7e-9a51-0c8e7d6f5a21',
  role: 'user',
  text: 'Which books came this week?',
  createdAt: '2026-11-21T11:12:38.402Z',
  ...spoken,
}
const reply = {
  id: 'c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f',
  role: 'assistant',
  text: 'Three, all on ships.',
  createdAt: '2026-11-21T11:12:40.090Z',
  ...spoken,
}
const replyEvents = [
  ['text', { item: '9:1', text: 'Three, all on ships.', replace: false }],
  ['message', reply],
  ['end', { state: 'done' }],
]
  .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  .join('')

const MODEL = 'openclaw/default'
const model = { id: MODEL, object: 'model', created: 1_795_281_866, owned_by: 'openclaw' }
const completion = { id: 'chatcmpl_1f0c2a9d', created: 1_795_281_866, model: MODEL }
const said = { role: 'assistant', content: 'Three, all on ships.' }

export const engineExamples: Record<string, Example> = {
  createChatCompletion: {
    request: { model: MODEL, messages: [{ role: 'user', content: question.text }] },
    response: {
      ...completion,
      object: 'chat.completion',
      choices: [{ index: 0, message: said, finish_reason: 'stop' }],
    },
    lines: `data: ${JSON.stringify({
      ...completion,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: said }],
    })}\n\ndata: [DONE]\n\n`,
  },
  createResponse: {
    request: { model: MODEL, input: question.text },
    response: {
      id: 'resp_1f0c2a9d',
      object: 'response',
      status: 'completed',
      model: MODEL,
      output: [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: said.content }] },
      ],
    },
    lines: `event: response.output_text.delta\ndata: ${JSON.stringify({
      type: 'response.output_text.delta',
      delta: said.content,
    })}\n\n`,
  },
  listModels: { response: { object: 'list', data: [model] } },
  readModel: { response: model },
  gitRefs: { response: '001e# service=git-upload-pack\n0000' },
  manifestSchema: {
    response: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'manifest.json of an agent, version 1',
      type: 'object',
    },
  },
  gitUploadPack: { request: '0014command=ls-refs\n0000', response: '0008NAK\n0000' },
  gitReceivePack: { request: '0000', response: '0000' },
  followAgentLogs: {
    response: `event: line\ndata: ${JSON.stringify({
      timestamp: '2026-11-21T11:05:40.733Z',
      level: 'INFO',
      source: 'gateway',
      message: 'http server listening',
    })}\n\n`,
  },
  listAgentUsage: {
    response: {
      usage: [
        {
          agentId: 'x7f3k2ab',
          at: '2026-11-21T11:12:33.120Z',
          memoryBytes: 702_545_920,
          memoryLimitBytes: 2_147_483_648,
        },
      ],
    },
  },
  readAgentUsage: {
    response: {
      memoryLimitBytes: 2_147_483_648,
      disk: { usedBytes: 14_155_776, limitBytes: 10_737_418_240 },
      samples: [
        {
          at: '2026-11-21T11:12:30.004Z',
          memoryBytes: 702_545_920,
          cpus: 0.021,
          diskBytes: 14_155_776,
          processes: 9,
        },
      ],
    },
  },
  listConversations: {
    response: {
      conversations: [
        {
          conversationId: CONVERSATION,
          title: 'Which books came this week?',
          updatedAt: '2026-11-21T11:12:40.118Z',
          isReplying: false,
        },
      ],
    },
  },
  readConversation: { response: { messages: [question, reply], isReplying: false, nextOffset: null } },
  deleteConversation: { response: { success: true } },
  sendMessage: { request: { text: question.text }, response: replyEvents },
  followConversation: { response: replyEvents },
  stopReply: { response: { stopped: true } },
  execCommand: {
    request: { command: 'git log --oneline -1', cwd: '/home/node/clawd' },
    response: {
      stdout: '4f1c2ab feat: begin workspace\n',
      stderr: '',
      exitCode: 0,
      truncated: false,
      timedOut: false,
      command: 'git log --oneline -1',
      timestamp: '2026-11-21T10:58:03.485Z',
    },
  },
  readAgentFile: { response: '# Librarian\n' },
  writeAgentFile: {
    request: '<bytes>',
    response: {
      path: '/home/node/clawd/workspace/NOTES.md',
      size: 12,
      version: '"1835021-12-1795431483485.1"',
    },
  },
  deleteAgentFile: { response: { success: true, path: '/home/node/clawd/workspace/NOTES.md' } },
  listAgentFiles: {
    response: {
      path: '/home/node/clawd/workspace',
      entries: [{ name: 'IDENTITY.md', type: 'file', size: 12, modifiedAt: '2026-11-21T10:58:03.485Z' }],
      truncated: false,
    },
  },
  uploadAgentFile: {
    request: { filename: 'notes.txt', contentBase64: 'SGVsbG8K' },
    response: { path: '/home/node/clawd/workspace/uploads/notes.txt', filename: 'notes.txt', size: 6 },
  },
  readConfig: { response: { config: CONFIG } },
  listOperatorKeys: { response: { keys: ['gateway.mode', 'gateway.port', 'telemetry.enabled'] } },
  readConfigSchema: {
    response: {
      path: 'agents.defaults.heartbeat',
      schema: { type: 'object', additionalProperties: false },
      label: 'Heartbeat',
      children: [
        {
          key: 'every',
          path: 'agents.defaults.heartbeat.every',
          type: 'string',
          required: false,
          hasChildren: false,
          label: 'Heartbeat interval',
          help: 'How often the agent is woken, such as 30m; 0m turns it off.',
        },
      ],
    },
  },
  writeConfig: { request: { config: CONFIG }, response: { success: true, message: 'Config written' } },
  validateConfig: { request: { config: CONFIG }, response: { valid: true, output: '' } },
  listChannels: {
    response: {
      telegram: {
        configured: true,
        enabled: true,
        dmPolicy: 'pairing',
        allowFrom: ['603767951'],
        botTokenSet: true,
        botTokenHint: '****x9Qk',
      },
      slack: null,
      discord: null,
      whatsapp: null,
      version: '2026.9.6',
    },
  },
  configureChannel: {
    request: { botToken: '123456789:AAHf…', dmPolicy: 'pairing', allowFrom: ['603767951'] },
    response: { success: true, message: 'Channel telegram configured' },
    others: {
      202: {
        success: true,
        message: 'Channel telegram configured; the gateway is being restarted',
        operation: restarting,
      },
    },
  },
  removeChannel: {
    response: { success: true, message: 'Channel telegram removed' },
    others: {
      202: {
        success: true,
        message: 'Channel telegram removed; the gateway is being restarted',
        operation: restarting,
      },
    },
  },
  listDevices: {
    response: {
      pending: [{ requestId: PAIRING, ...device, ts: 1_795_281_914_736 }],
      paired: [],
    },
  },
  approveDevice: { response: { success: true, requestId: PAIRING, message: `Approved ${PAIRING}` } },
  approveAllDevices: { response: { approved: [PAIRING], failed: [], message: 'Approved 1 of 1' } },
  listTasks: { response: { jobs: [job] } },
  createTask: {
    request: {
      name: job.name,
      schedule: job.schedule,
      payload: { kind: 'agentTurn', message: job.payload.message },
    },
    response: job,
  },
  getTask: { response: job },
  updateTask: {
    request: { schedule: { kind: 'every', everyMs: 3_600_000 } },
    response: { ...job, schedule: { kind: 'every', everyMs: 3_600_000 } },
  },
  deleteTask: { response: { success: true } },
  runTask: { response: { ok: true, enqueued: true, runId: `manual:${JOB}:1795281900000:1` } },
  toggleTask: { request: { enabled: false }, response: { ...job, enabled: false } },
  listTaskRuns: {
    response: { entries: [run], total: 1, offset: 0, limit: 50, hasMore: false, nextOffset: null },
  },
}
