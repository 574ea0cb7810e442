/** Webhooks, and the same deliveries for a program on this machine. */
import { createHmac, randomBytes } from 'node:crypto'
import { allItems, unwrap } from '../../../typescript/src/index.ts'
import { count, LIMIT } from '../arguments.ts'
import { command } from '../command.ts'
import { UsageError } from '../errors.ts'
import { followEvents } from '../events.ts'
import { collect } from '../find.ts'
import { ago, table } from '../format.ts'
import { harmless, paint } from '../terminal.ts'
import { eventText } from './events.ts'

/** As long as Berth waits for a target. */
const TARGET_MS = 15_000
const TYPE = { about: 'only this type, or a group of types: pin.*', value: 'type', many: true } as const

export const webhookCommands = [
  command({
    name: 'webhooks ls',
    summary: 'list webhooks',
    options: { limit: LIMIT },
    async run({ berth, options }) {
      const webhooks = await collect(
        allItems((page) => berth.GET('/v0/webhooks', { params: { query: page } })),
        count(options.limit, 100),
      )
      const rows = webhooks.map(({ id, url, events, enabled, disabledReason, createdAt }) => ({
        ...{
          id,
          url,
          events,
          state: enabled ? 'enabled' : `disabled: ${disabledReason}`,
          created: ago(createdAt),
        },
      }))
      return { data: webhooks, text: table(rows) }
    },
  }),
  command({
    name: 'webhooks create',
    summary: 'have events sent to a URL; prints the secret, once',
    usage: '<url>',
    options: { type: TYPE },
    async run({ berth, args: [url = ''], options }) {
      const events = (options.type.length > 0 ? options.type : ['*']) as ['*']
      const { data } = await unwrap(berth.POST('/v0/webhooks', { body: { url, events } }))
      return { data, text: `${data.id}\n${data.secret}` }
    },
  }),
  command({
    name: 'webhooks test',
    summary: 'send a test event to a webhook',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      const { data } = await unwrap(berth.POST('/v0/webhooks/{id}/test', { params: { path: { id } } }))
      return { data, text: `${data.state} ${data.id}` }
    },
  }),
  command({
    name: 'webhooks rm',
    summary: 'delete a webhook',
    usage: '<id>',
    async run({ berth, args: [id = ''] }) {
      await unwrap(berth.DELETE('/v0/webhooks/{id}', { params: { path: { id } } }))
      return { data: { id }, text: `deleted ${id}` }
    },
  }),
  command({
    name: 'webhooks listen',
    summary: 'send the workspace’s events to a program on this machine, as a webhook would',
    usage: '<url>',
    options: { type: TYPE },
    more: `It follows the event stream, so it needs neither a webhook nor a public address, and any key
that may see the events. Requests are signed (Standard Webhooks) with BERTH_WEBHOOK_SECRET,
or else with a new secret, which it prints. A failed request is not repeated.

  berth webhooks listen http://localhost:4000/hook --type 'pin.*'`,
    async run({ berth, args: [url = ''], options, json, signal }) {
      if (!URL.canParse(url)) throw new UsageError(`${url} is not a URL like http://localhost:4000/hook`)
      const given = process.env.BERTH_WEBHOOK_SECRET
      const secret = given || `whsec_${randomBytes(32).toString('base64')}`
      const told = (text: string) => console.error(paint('dim', text, process.stderr))
      const onConnection = (isOpen: boolean) =>
        told(isOpen ? `sending events to ${url}` : 'the connection was lost; trying again')
      if (!given) told(`signed with ${secret}`)
      for await (const { event, body } of followEvents(berth, {
        types: options.type,
        signal,
        onConnection,
      })) {
        const result = await deliver(url, `msg_${event.id}`, body, secret)
        if (json) console.log(JSON.stringify({ event, ...result }))
        else console.log(`${eventText(event)} ${resultText(result)}`)
      }
    },
  }),
]

interface Delivery {
  status: number | null
  error: string | null
  ms: number
}

async function deliver(url: string, id: string, body: string, secret: string): Promise<Delivery> {
  const began = performance.now()
  const timestamp = Math.floor(Date.now() / 1000)
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': `${timestamp}`,
    'webhook-signature': `v1,${signature}`,
  }
  const took = () => Math.round(performance.now() - began)
  try {
    const response = await fetch(url, {
      ...{ method: 'POST', body, headers, redirect: 'manual' as const },
      signal: AbortSignal.timeout(TARGET_MS),
    })
    await response.body?.cancel()
    return { status: response.status, error: null, ms: took() }
  } catch (error) {
    const { cause, message } = error as Error
    return { status: null, error: (cause as NodeJS.ErrnoException)?.code ?? message, ms: took() }
  }
}

function resultText({ status, error, ms }: Delivery): string {
  const isGood = status !== null && status >= 200 && status < 300
  return paint(isGood ? 'green' : 'red', harmless(`→ ${status ?? error} in ${ms} ms`))
}
