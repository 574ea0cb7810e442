/** Egress policies from inside a sandbox. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { agentsApiUrl } from '../../../src/agents/urls.ts'
import { loadConfig } from '../../../src/config.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { newAgent, useStandIn } from './context.ts'

const context = await openContext()
/** A second, and what a command in the sandbox takes. */
const SOON_MS = 15_000

describe('an egress policy', () => {
  it('an egress policy applies to the programs in a sandbox within a second', async (t) => {
    const owner = await context.workspace()
    await useStandIn(context, owner)
    const agent = await newAgent(owner.api)
    const path = `${agent.path}/egress`
    const { enforced } = (await owner.api.get(path)).body.data
    assert.equal(enforced, process.env.BERTH_TEST_STACK === 'real')
    if (!enforced) return t.diagnostic('agents are processes here')

    const { host } = new URL(agentsApiUrl(loadConfig(context.env)))
    // Node's fetch asks for a tunnel, and names only the status of a refusal.
    const ask = async (environment = '') => {
      const program = `fetch("http://${host}/healthz").then(async (it) => console.log(it.status, await it.text()))`
      const { body } = await agent.api.post(`${agent.path}/console/exec`, {
        // Sandboxes call names below localhost directly.
        command: `NO_PROXY= no_proxy= ${environment} node -e '${program}' 2>&1`,
      })
      return body.stdout as string
    }
    const askUntil = (what: string, expected: RegExp, environment?: string) =>
      until(what, async () => expected.test(await ask(environment)), SOON_MS)
    assert.match(await ask(), /^200 /)
    assert.equal((await owner.api.put(path, { mode: 'none' })).status, 200)
    await askUntil('the policy applies', /\(403\)/)
    // Without its credential it is known by its address.
    const bare = await agent.api.post(`${agent.path}/console/exec`, { command: 'echo $HTTP_PROXY' })
    const { protocol, host: proxy } = new URL(bare.body.stdout.trim())
    const anonymous = `HTTP_PROXY=${protocol}//${proxy} http_proxy=${protocol}//${proxy}`
    await askUntil('the policy applies without a credential', /\(403\)/, anonymous)
    const another = `HTTP_PROXY=${protocol}//x:another@${proxy} http_proxy=${protocol}//x:another@${proxy}`
    await askUntil('another credential is refused', /\(407\)/, another)
    assert.match(await ask('env -u HTTP_PROXY -u http_proxy -u NODE_USE_ENV_PROXY'), /fetch failed/)

    const hostname = host.replace(/:\d+$/, '')
    assert.equal((await owner.api.put(path, { mode: 'listed', allow: [hostname] })).status, 200)
    await askUntil('the host is listed', /^200 /)
    const counted = await until('its requests are counted', async () => {
      const { hosts } = (await owner.api.get(`${path}/hosts`)).body.data
      return hosts.find((one: { requests: number; denied: number }) => one.requests >= 2 && one.denied >= 2)
    })
    assert.equal(counted.host, hostname)
    assert.ok(counted.bytesReceived > 100)
    assert.equal((await agent.gateway.put(path, { mode: 'open' })).status, 403)
  })
})
