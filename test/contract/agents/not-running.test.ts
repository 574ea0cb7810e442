/** Routes that need a running agent, requested for one that does not run. New routes are included automatically. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import type { Operation } from '../../support/openapi.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

/** The terminal is a WebSocket. */
const NEEDING =
  /^.v0.agents.\{agentId\}.(usage|logs|conversations|console(?!.terminal)|files|git|config|devices|tasks|openai)\b/
/** Required parameters of these routes' queries. */
const QUERY = new URLSearchParams({ path: 'a', service: 'git-upload-pack' })

const context = await openContext()
const own = await context.workspace()

it('all routes that need a running agent return 503 with Retry-After while it does not run', async () => {
  const { agentId } = await insertAgent(context, own)
  const routes = Object.entries(context.anonymous.document.paths).filter(([path]) => NEEDING.test(path))
  assert.ok(routes.length > 20)
  for (const [path, operations] of routes)
    for (const [method, { requestBody }] of Object.entries<Operation>(operations)) {
      const at = path.replace('{agentId}', agentId).replace(/\{\w+\}/g, uuidv7())
      const { example } = (requestBody?.content['application/json'] ?? {}) as { example?: unknown }
      const response = await fetch(`${context.url}${at}?${QUERY}`, {
        method: method.toUpperCase(),
        headers: { authorization: `Bearer ${own.api.key}`, 'content-type': 'application/json' },
        ...(example !== undefined && { body: JSON.stringify(example) }),
        signal: AbortSignal.timeout(60_000),
      })
      assert.deepEqual(
        [path, response.status, response.headers.get('retry-after'), await response.json()],
        [path, 503, '5', { error: 'The agent is not running' }],
      )
    }
})
