import type { Example } from './example.ts'

const event = {
  id: '1816211578880123',
  type: 'group.created',
  createdAt: '2026-11-21T10:58:03.485Z',
  workspaceId: '0193a1be-77a0-7c3e-9d14-0c5b8a6f2e31',
  resource: { type: 'group', id: '0193a1c0-1f5c-7e02-b1d6-9a4c77e03b15' },
  data: { network: 'public', name: 'Catalogues', isPublic: false },
}

export const eventExamples: Record<string, Example> = {
  streamEvents: {
    response: `id: 1816211578880122\n\nevent: group.created\nid: 1816211578880123\ndata: ${JSON.stringify(event)}\n\n`,
  },
}
