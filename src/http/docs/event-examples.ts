import type { Example } from './example.ts'

const event = {
  id: '1816211578880123',
  type: 'group.created',
  createdAt: '2026-11-21T10:58:03.485Z',
  workspaceId: '0193a1be-77a0-7c3e-9d14-0c5b8a6f2e31',
  resource: { type: 'group', id: '0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15' },
  data: { network: 'public', name: 'Catalogues', isPublic: false },
}

const webhook = {
  id: '0193a1d4-6f20-7c18-b3a9-51e0d7c2f846',
  url: 'https://hooks.example.com/berth',
  events: ['pin.*', 'agent.error'],
  agentId: null,
  groupId: null,
  enabled: true,
  disabledReason: null,
  failingSince: null,
  createdAt: '2026-11-25T09:14:03.120Z',
  updatedAt: '2026-11-25T09:14:03.120Z',
}
const secret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM='
const delivery = {
  id: '0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57',
  type: 'pin.pinned',
  state: 'delivered',
  attempts: 1,
  createdAt: '2026-11-25T09:15:40.008Z',
  lastAttemptAt: '2026-11-25T09:15:40.061Z',
  nextAttemptAt: null,
  endedAt: '2026-11-25T09:15:40.061Z',
  status: 204,
  response: '',
  error: null,
}
const body =
  '{"id":"1806834901245952","type":"pin.pinned","createdAt":"2026-11-25T09:15:39.990Z","workspaceId":"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9","resource":{"type":"file","id":"0193a1d4-f3b0-7d55-8a21-90c6b7e4d312"},"data":{"network":"public","cid":"bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e","name":"report.pdf","status":"pinned","size":48213,"mimeType":"application/pdf","groupId":null}}'
const waiting = {
  ...delivery,
  state: 'pending',
  attempts: 0,
  lastAttemptAt: null,
  nextAttemptAt: '2026-11-25T09:15:40.008Z',
  endedAt: null,
  status: null,
  response: null,
}

export const eventExamples: Record<string, Example> = {
  streamEvents: {
    response: `id: 1816211578880122\n\nevent: group.created\nid: 1816211578880123\ndata: ${JSON.stringify(event)}\n\n`,
  },
  listWebhooks: { response: { data: { webhooks: [webhook], next_page_token: '' } } },
  createWebhook: {
    request: { url: webhook.url, events: webhook.events },
    response: { data: { ...webhook, secret } },
  },
  getWebhook: { response: { data: webhook } },
  changeWebhook: {
    request: { events: ['*'] },
    response: { data: { ...webhook, events: ['*'] } },
  },
  deleteWebhook: { response: { data: null } },
  rotateWebhookSecret: { response: { data: { ...webhook, secret } } },
  testWebhook: {
    response: {
      data: {
        ...waiting,
        type: 'webhook.test',
        body: '{"id":"0193a1d5-0b7c-7a41-9c62-e8f4a1d03b57","type":"webhook.test","createdAt":"2026-11-25T09:15:40.008Z","workspaceId":"0193a1af-90d1-7c22-8e4b-7f30a1c5d2e9","resource":{"type":"webhook","id":"0193a1d4-6f20-7c18-b3a9-51e0d7c2f846"},"data":{}}',
      },
    },
  },
  listDeliveries: { response: { data: { deliveries: [delivery], next_page_token: '' } } },
  getDelivery: { response: { data: { ...delivery, body } } },
  redeliver: { response: { data: { ...waiting, body } } },
}
