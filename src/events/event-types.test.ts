import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import { eventView, viewEvent } from './event.ts'
import { EVENT_TYPES, eventTypes } from './event-types.ts'

const PAGE = new URL('../../docs/events.md', import.meta.url)
const PLACE = /(<!-- types -->\n)[\s\S]*(<!-- \/types -->)/

const AUDIENCES = {
  files: '`org:files:read`',
  groups: '`org:groups:read`',
  agents: '`org:agents:read`',
  operation: 'as `/v0/operations`',
  domain: '`org:agents:read`; of a gateway `org:gateways:read`',
  key: 'owner with `admin`; its user with `org:read`',
  owner: 'owner with `admin`',
} as const

function table(): string {
  const rows = EVENT_TYPES.map((type) => {
    const { summary, resource, resourceId, audience, example } = eventTypes[type]
    return `| \`${type}\` | ${summary} | \`${resource}\`: ${resourceId} | ${AUDIENCES[audience]} | \`${JSON.stringify(example)}\` |`
  })
  return `| type | what has happened | resource | who sees it | \`data\` of one |\n|---|---|---|---|---|\n${rows.join('\n')}\n`
}

describe('the types of events', () => {
  it('the types of events match the documentation', async () => {
    const page = await readFile(PAGE, 'utf8')
    const right = page.replace(PLACE, (_, before, after) => `${before}${table()}${after}`)
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, right)
    else assert.equal(page, right)
    assert.match(page, PLACE)
  })

  it('the types of events have examples that match their schema', () => {
    for (const type of EVENT_TYPES) {
      const { data, example } = eventTypes[type]
      assert.deepEqual(data.strict().parse(example), example, type)
    }
  })

  it('the view of an event contains all of its fields', () => {
    const createdAt = new Date(0)
    const resource = { type: 'file', id: 'a' }
    const event = {
      id: '9007199254740993',
      type: 'file.created',
      workspaceId: 'w',
      resource,
      data: { size: 1 },
    }
    const shown = viewEvent({ ...event, createdAt })
    assert.deepEqual(eventView.parse(shown), { ...event, createdAt: '1970-01-01T00:00:00.000Z' })
  })
})
