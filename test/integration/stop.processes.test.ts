/** Ctrl-C of `npm start` during requests. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { it } from 'node:test'
import { until } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'

it('a stop answers waiting requests and reports what it still waits for', async (t) => {
  const stack = await startStack({ database: 'of the run' })
  let stopping: Promise<void> | undefined
  t.after(() => stopping ?? stack.stop())
  const headers = { authorization: `Bearer ${await stack.createKey()}`, 'content-type': 'application/json' }
  // No peer has this content, so the search for the pin continues.
  const cid = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'
  const pin = await fetch(`${stack.url}/v3/files/public/pin_by_cid`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ cid }),
  })
  const operation = `${stack.url}/v0/operations/${pin.headers.get('operation-id')}`
  const events = await fetch(`${operation}/events`, { headers })
  const upload = request(`${stack.url}/v3/files`, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'multipart/form-data; boundary=b',
      'content-length': 1000,
      expect: '100-continue',
    },
  })
  upload.on('error', () => {})
  upload.flushHeaders()
  await once(upload, 'continue')
  // The long poll has arrived once its connection has: the server answers in order, and this request comes after it.
  const poll = fetch(`${operation}?wait=60`, { headers })
  await fetch(operation, { headers })

  stopping = stack.stop()
  const answer = await poll
  assert.equal(answer.status, 200)
  const { data } = (await answer.json()) as { data: { state: string } }
  assert.ok(['queued', 'running'].includes(data.state), data.state)
  await events.text()
  await until('it reports what it waits for', () => stack.output().includes('Waiting for 1 request.'))
  upload.destroy()
  await stopping
})
