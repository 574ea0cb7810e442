/** Examples for the instance routes. */
import { AUDIT_EXAMPLE, PLAN_EXAMPLE, WORKSPACE } from './account-examples.ts'
import type { Example } from './example.ts'

const workspace = {
  id: WORKSPACE,
  name: 'catalogues',
  plan: 'pro',
  createdAt: '2026-11-21T10:30:51.204Z',
  usage: { files: 128, bytes: 734_003_200, agents: 3 },
}

export const adminExamples: Record<string, Example> = {
  listInstanceAudit: AUDIT_EXAMPLE,
  listPlans: { response: { data: { plans: [PLAN_EXAMPLE], next_page_token: '' } } },
  listAllWorkspaces: { response: { data: { workspaces: [workspace], next_page_token: '' } } },
  createWorkspace: {
    request: { name: 'catalogues', plan: 'pro', owner: 'Ada' },
    response: {
      data: {
        ...workspace,
        usage: { files: 0, bytes: 0, agents: 0 },
        token: 'eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiIwMTkzYTFhZiJ9.c2lnbmF0dXJl',
      },
    },
  },
  getAnyWorkspace: { response: { data: workspace } },
  changeWorkspace: { request: { plan: 'pro' }, response: { data: workspace } },
  getInstanceUsage: {
    response: {
      data: {
        networks: {
          public: { files: 4096, bytes: 21_474_836_480 },
          private: { files: 512, bytes: 1_073_741_824 },
        },
        agents: { starting: 0, running: 12, not_running: 3 },
      },
    },
  },
  getInstanceHealth: {
    response: {
      data: {
        status: 'degraded',
        parts: [
          { name: 'database', status: 'ok' },
          {
            name: 'workers',
            status: 'down',
            detail: 'no worker process is running',
            advice: 'Run `npm start`, or `node src/main.ts worker`.',
          },
        ],
      },
    },
  },
  listQueues: {
    response: {
      data: {
        queues: [{ name: 'pins', queued: 3, running: 12, oldestSeconds: 0.8, slots: 64 }],
        next_page_token: '',
      },
    },
  },
  listWorkers: {
    response: {
      data: {
        workers: [
          {
            id: '0193a1ad-6c31-7b0e-9f42-8d17c5a0e6b3',
            version: '0.4.0',
            isAlive: true,
            startedAt: '2026-11-21T10:20:04.771Z',
            seenAt: '2026-11-21T11:42:09.310Z',
            slots: { pins: 64, agents: 4 },
            parts: { database: { status: 'ok' }, disk: { status: 'ok', detail: '84 GB free of 128 GB' } },
          },
        ],
        next_page_token: '',
      },
    },
  },
}
