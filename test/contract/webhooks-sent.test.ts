/** Deliveries of webhooks, accepted by the example receivers of docs/webhooks.md. */
import assert from 'node:assert/strict'
import { readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { WAITS_MS } from '../../workers/handlers/webhook.ts'
import { useFolder } from '../support/folder.ts'
import { run, until } from '../support/processes.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { openContext } from './context.ts'
import { store } from './stored.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const page = await readFile(join(ROOT, 'docs/webhooks.md'), 'utf8')
const [byLibrary = '', byHand = ''] = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code)

const context = await openContext()

/** The loopback ports to which the shared Berth may send webhooks. */
const portsOf = (allowed = '') => allowed.split(',').map((one) => Number(one.split(':')[1]))

describe('docs/webhooks.md', () => {
  it('docs/webhooks.md lists the waits between attempts', () => {
    const shown = (ms: number) =>
      ms < 60_000 ? `${ms / 1000} s` : ms < 3_600_000 ? `${ms / 60_000} min` : `${ms / 3_600_000} h`
    const rows = WAITS_MS.map((ms, i) => `| ${i + 2} | ${shown(ms)} |\n`).join('')
    assert.ok(page.includes(`| 1 | at once |\n${rows}\n`))
  })
})

describe('a webhook over http', () => {
  it('an upload is delivered to two receivers that verify it, one with a library and one by hand', async () => {
    const dir = await useFolder('berth-webhooks-')
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
    const [program, module] = [join(dir, 'receiver.mjs'), join(dir, 'by-hand.mjs')]
    await Promise.all([writeFile(program, byLibrary), writeFile(module, byHand)])
    const { isSigned } = await import(module)
    const [port, otherPort] = portsOf(context.env.BERTH_WEBHOOK_ALLOW)
    const receiver = await startReceiver(otherPort)
    after(() => receiver.stop())
    const { api, id: workspaceId } = await context.workspace()
    const create = async (url: string) => {
      const { status, body } = await api.post('/v0/webhooks', { url, events: ['file.created'] })
      assert.equal(status, 201)
      return body.data as { id: string; secret: string }
    }
    // Line breaks in a URL inject no header.
    const [first, second] = [
      await create(`http://127.0.0.1:${port}/`),
      await create(`${receiver.url}?\r\nx-injected: yes\r\n`),
    ]
    const env = { ...process.env, PORT: `${port}`, WEBHOOK_SECRET: first.secret }
    const running = run(process.execPath, [program], { env })
    after(() => running.end('SIGTERM'))
    const unsigned = () => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })
    const refused = await until('the receiver responds', unsigned)
    assert.equal(refused.status, 400)

    const file = await store(api, 'public', 'sent to webhooks')
    await until('the upload is delivered', () => running.output().includes(`file.created ${file.id}\n`))
    await until('both were delivered', () => receiver.received[0])
    const [{ headers, body } = { headers: {} as Record<string, string>, body: '' }] = receiver.received
    assert.equal(isSigned(headers, body, second.secret), true)
    for (const [otherHeaders, otherBody, secret] of [
      [headers, `${body} `, second.secret],
      [headers, body, first.secret],
      [{ ...headers, 'webhook-id': 'msg_1' }, body, second.secret],
      [{ ...headers, 'webhook-timestamp': '1' }, body, second.secret],
      [{ ...headers, 'webhook-timestamp': 'x' }, body, second.secret],
    ])
      assert.equal(isSigned(otherHeaders, otherBody, secret), false)
    const event = new Webhook(second.secret).verify(body, headers) as Record<string, any>
    assert.deepEqual(
      [event.type, event.workspaceId, event.resource, event.data.cid, event.data.size],
      ['file.created', workspaceId, { type: 'file', id: file.id }, file.cid, file.size],
    )
    assert.deepEqual(Object.keys(headers).sort(), [
      'connection',
      'content-length',
      'content-type',
      'host',
      'user-agent',
      'webhook-id',
      'webhook-signature',
      'webhook-timestamp',
    ])
    assert.deepEqual(
      [headers['content-type'], headers['user-agent']?.split('/')[0]],
      ['application/json', 'Berth'],
    )
    const [delivery] = await until('the delivery has ended', async () => {
      const { data } = (await api.get(`/v0/webhooks/${second.id}/deliveries`, { state: 'delivered' })).body
      return data.deliveries.length > 0 && data.deliveries
    })
    assert.equal(headers['webhook-id'], `msg_${delivery.id}`)
    assert.deepEqual(
      [delivery.type, delivery.attempts, delivery.status, delivery.response, delivery.error],
      ['file.created', 1, 204, '', null],
    )
  })
})
