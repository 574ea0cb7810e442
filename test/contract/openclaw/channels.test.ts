/** Messaging channels (contract 4.3, 5.6, 7). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Client, type Reply } from '../../support/client.ts'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'
import { insertAgent } from '../agents/rows.ts'
import { openContext, startShared } from '../context.ts'
import { newAgent } from './context.ts'

const TELEGRAM = '123456789:AAHtest-token_of-telegram-x9Qk'
const LIVE = '987654321:AAHtest-token_of-telegram-of-an-agent-that-runs'
const REFUSED = '123456789:refused-by-telegram'
const SLACK = { botToken: 'xoxb-1-secret-of-slack-bot', appToken: 'xapp-1-secret-of-slack-app' }

/** Stands in for Telegram's Bot API. */
const asked: string[] = []
const BERTH_TELEGRAM_URL = await listen((req, res) => {
  asked.push(req.url ?? '')
  const isRefused = req.url?.includes(REFUSED)
  res.writeHead(isRefused ? 401 : 200, { 'content-type': 'application/json' })
  res.end(
    JSON.stringify(isRefused ? { ok: false, error_code: 401, description: 'Unauthorized' } : { ok: true }),
  )
})

const stack = await startShared({ BERTH_TELEGRAM_URL })
const context = await openContext(stack)
const { sql, workspace } = context
const own = await workspace()
const { api } = own

/** Channels of an agent that is only a row: its gateway is left alone. */
async function rowChannels() {
  const { id, path } = await insertAgent(context, own)
  return {
    id,
    path: `${path}/channels`,
    list: async () => (await api.get(`${path}/channels`)).body,
    save: (channel: string, body: object) =>
      api.post(`${path}/channels/${channel}`, { skipRestart: true, ...body }),
  }
}

describe('channels', () => {
  it('no channels are configured by default', async () => {
    const { list } = await rowChannels()
    const none = { telegram: null, slack: null, discord: null, whatsapp: null }
    assert.deepEqual(await list(), { ...none, version: '2026.9.6' })
  })
  it('channels show only the end of their tokens, which are stored encrypted', async () => {
    const { id, list, save } = await rowChannels()
    const settings = { dmPolicy: 'pairing', allowFrom: [603767951, '42'] }
    const saved = await save('telegram', { botToken: TELEGRAM, ...settings })
    assert.deepEqual(
      [saved.status, saved.body],
      [200, { success: true, message: 'Channel telegram configured' }],
    )
    assert.ok(asked.includes(`/bot${TELEGRAM}/getMe`))
    for (const [channel, body] of [
      ['slack', SLACK],
      ['discord', { botToken: 'secret.of.discord.bot' }],
      ['whatsapp', { dmPolicy: 'allowlist', allowFrom: ['+491701234567'] }],
    ] as const)
      assert.equal((await save(channel, body)).status, 200)
    const common = { configured: true, enabled: true, dmPolicy: 'pairing', allowFrom: [] }
    assert.deepEqual(await list(), {
      telegram: {
        ...common,
        allowFrom: ['603767951', '42'],
        botTokenSet: true,
        botTokenHint: '****x9Qk',
      },
      slack: {
        ...common,
        botTokenSet: true,
        botTokenHint: '****-bot',
        appTokenSet: true,
        appTokenHint: '****-app',
      },
      discord: { ...common, botTokenSet: true, botTokenHint: '****.bot' },
      whatsapp: { ...common, dmPolicy: 'allowlist', allowFrom: ['+491701234567'], linked: false },
      version: '2026.9.6',
    })
    const rows = await sql('SELECT settings::text, ciphertext FROM agent_channel WHERE agent_id = $1', [id])
    for (const { settings, ciphertext } of rows)
      assert.doesNotMatch(
        `${settings} ${(ciphertext as Buffer | null)?.toString('latin1')}`,
        /secret|AAHtest/,
      )
  })
  it('channels keep what a change leaves out, including tokens', async () => {
    const { list, save } = await rowChannels()
    const own = { botToken: 'xoxb-4-secret-of-slack-bot', appToken: 'xapp-4-secret-of-slack-app' }
    await save('slack', { ...own, allowFrom: ['U1'] })
    assert.equal((await save('slack', { enabled: false, botToken: 'xoxb-another-one-new1' })).status, 200)
    const { slack } = await list()
    assert.deepEqual(
      [slack.enabled, slack.allowFrom, slack.botTokenHint, slack.appTokenHint],
      [false, ['U1'], '****new1', '****-app'],
    )
  })
  for (const [channel, body, message] of [
    ['telegram', {}, 'botToken is required (string)'],
    ['telegram', { botToken: '' }, 'botToken is required (string)'],
    ['telegram', { botToken: 7 }, 'botToken is required (string)'],
    ['telegram', { botToken: 'no token' }, /^botToken: /],
    ['telegram', { botToken: REFUSED }, 'Telegram rejected the bot token: Unauthorized'],
    ['telegram', { botToken: TELEGRAM, dmPolicy: 'everybody' }, /^dmPolicy: /],
    ['telegram', { botToken: TELEGRAM, dmPolicy: 'allowlist' }, /^allowFrom: /],
    ['telegram', { botToken: TELEGRAM, allowFrom: 'me' }, /^allowFrom: /],
    ['telegram', { botToken: TELEGRAM, allowFrom: [''] }, /^allowFrom\[0\]: /],
    ['telegram', { botToken: TELEGRAM, enabled: 'yes' }, /^enabled: /],
    ['slack', { botToken: SLACK.botToken }, 'appToken is required (string)'],
    ['slack', { appToken: SLACK.appToken }, 'botToken is required (string)'],
    ['slack', { botToken: 'xapp-1', appToken: SLACK.appToken }, 'botToken: must start with xoxb-'],
    ['slack', { botToken: SLACK.botToken, appToken: 'xoxb-1' }, 'appToken: must start with xapp-'],
    ['discord', {}, 'botToken is required (string)'],
    ['signal', { botToken: 'a' }, 'Unsupported channel'],
    ['TELEGRAM', { botToken: TELEGRAM }, 'Unsupported channel'],
    ['__proto__', {}, 'Unsupported channel'],
  ] as const)
    it(`a channel is refused: ${channel} with ${JSON.stringify(body)}`, async () => {
      const { list, save } = await rowChannels()
      assertError(await save(channel, body), 400, message)
      assert.equal((await list()).telegram, null)
    })
  it("a channel rejects another agent's token, without naming the agent [report: bot tokens]", async () => {
    const TAKEN = '409 botToken: another agent has this token; each agent needs a bot of its own'
    const taken = { botToken: '555555555:AAHtest-token_of-telegram-twice', skipRestart: true }
    const said = ({ status, body }: Reply) => `${status} ${body.error}`
    const first = await rowChannels()
    assert.equal((await first.save('telegram', taken)).status, 200)
    assert.equal((await first.save('telegram', { ...taken, dmPolicy: 'open' })).status, 200, 'its own')
    const second = await rowChannels()
    assert.equal(said(await second.save('telegram', taken)), TAKEN)
    assert.equal((await second.list()).telegram, null)
    const other = await workspace()
    const { path } = await insertAgent(context, other)
    const foreign = () => other.api.post(`${path}/channels/telegram`, taken)
    assert.equal(said(await foreign()), TAKEN)
    const made = await other.api.post('/v0/agents', { name: 'b', channels: { telegram: taken } })
    assert.equal(said(made), TAKEN)
    assert.equal((await api.delete(`${first.path}/telegram`, { prefer: 'wait=0' })).status, 202)
    const both = await Promise.all([second.save('telegram', taken), foreign()])
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 409], 'one of two concurrent requests')
  })
  it('each token of Slack and Discord belongs to one agent [report: bot tokens]', async () => {
    const slack = { botToken: 'xoxb-2-secret-of-slack-bot', appToken: 'xapp-2-secret-of-slack-app' }
    const [first, second] = [await rowChannels(), await rowChannels()]
    await first.save('slack', slack)
    await first.save('discord', { botToken: 'another.secret.of.discord' })
    assertError(await second.save('slack', { ...slack, botToken: 'xoxb-3-of-its-own' }), 409, /^appToken: /)
    assertError(await second.save('slack', { ...slack, appToken: 'xapp-3-of-its-own' }), 409, /^botToken: /)
    assertError(await second.save('discord', { botToken: 'another.secret.of.discord' }), 409, /^botToken: /)
  })
  it('a channel that is not configured cannot be removed', async () => {
    const { path } = await rowChannels()
    assertError(await api.delete(`${path}/telegram`), 404, 'The channel is not configured')
    assertError(await api.delete(`${path}/signal`), 400, 'Unsupported channel')
  })
  it('channels are not part of the free plan', async () => {
    const free = await workspace('free')
    const { path } = await insertAgent(context, free)
    const body = { botToken: TELEGRAM, skipRestart: true }
    const reply = await free.api.post(`${path}/channels/telegram`, body)
    assertError(reply, 403, 'Channels are not part of the free plan')
    assert.equal((await free.api.get(`${path}/channels`)).body.telegram, null)
  })
  it('channels need a key with write access', async () => {
    const { path } = await rowChannels()
    const reader: Client = await own.keyed('org:agents:read')
    assert.equal((await reader.get(path)).status, 200)
    assert.equal((await reader.post(`${path}/telegram`, {})).status, 403)
    assert.equal((await reader.delete(`${path}/telegram`)).status, 403)
  })
})

describe('channels of a running agent', async () => {
  const agent = await newAgent(api)
  const channel = `${agent.path}/channels/telegram`
  const patient = { prefer: 'wait=150' }
  /** The change is done, even if that took longer than one request waits. */
  const done = async ({ status, headers, body }: Reply) => {
    if (status === 200) return
    assert.equal(status, 202, JSON.stringify(body))
    const operation = `/v0/operations/${headers.get('operation-id')}`
    const isDone = async () => (await api.get(operation, { wait: '30' })).body.data.state === 'succeeded'
    await until('the gateway is restarted', isDone, 180_000)
  }
  const exec = async (command: string): Promise<string> =>
    (await api.post(`${agent.path}/console/exec`, { command })).body.stdout
  const onDisk = async () => JSON.parse(await exec('cat ../.openclaw/openclaw.json'))

  it('a channel of a running agent reaches its engine, and a request without wait returns 202', async () => {
    const body = { botToken: LIVE, dmPolicy: 'open' }
    const reply = await api.post(channel, body, { prefer: 'respond-async' })
    assert.equal(reply.status, 202)
    assert.equal(reply.body.operation.id, reply.headers.get('operation-id'))
    await done(reply)
    const { channels, plugins } = await onDisk()
    const { enabled, botToken, dmPolicy, allowFrom } = channels.telegram
    assert.deepEqual([enabled, botToken, dmPolicy, allowFrom], [true, LIVE, 'open', ['*']])
    assert.equal(plugins.entries.telegram.enabled, true)
    // The log is a moment behind the gateway.
    const loaded = /\d+ plugins: [^)]*\btelegram\b/
    await until('it has loaded the plugin', async () =>
      loaded.test((await api.get(`${agent.path}/logs`)).body.logs),
    )
  })
  it('a removed channel disappears from a running agent', async () => {
    const reply = await api.delete(channel, patient)
    assert.match(reply.body.message, /^Channel telegram removed/)
    await done(reply)
    const text = JSON.stringify(await onDisk())
    assert.ok(!text.includes(LIVE))
    assert.equal((await api.get(`${agent.path}/channels`)).body.telegram, null)
  })
  it('a channel change of a running agent fails with the gateway, and stays saved', async () => {
    await exec('cd ../.openclaw && mv openclaw.json kept && mkdir openclaw.json')
    const configured = await api.post(channel, { botToken: LIVE }, patient)
    assertError(configured, 500, 'Configuration failed')
    assert.ok((await api.get(`${agent.path}/channels`)).body.telegram.configured)
    assertError(await api.delete(channel, patient), 500, 'Removal failed')
    assert.equal((await api.get(`${agent.path}/channels`)).body.telegram, null)
  })
})
