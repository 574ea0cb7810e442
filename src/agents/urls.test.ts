import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../config.ts'
import { agentsApiUrl, agentUrls, originOf } from './urls.ts'

describe('agent URLs', () => {
  const cases: [env: Record<string, string>, baseUrl: string, wsUrl: string][] = [
    [{}, 'http://x0000001.agents.localhost:3000', 'ws://x0000001.agents.localhost:3000'],
    [
      { PUBLIC_URL: 'https://berth.example/', BERTH_AGENT_DOMAIN: 'Agents.Example' },
      'https://x0000001.agents.example',
      'wss://x0000001.agents.example',
    ],
    [
      { PUBLIC_URL: 'https://berth.example:8443', PORT: '80' },
      'https://x0000001.agents.localhost:8443',
      'wss://x0000001.agents.localhost:8443',
    ],
    [{ HOST: '0.0.0.0', PORT: '80' }, 'http://x0000001.agents.localhost', 'ws://x0000001.agents.localhost'],
    [
      { HOST: '::1', PORT: '8080' },
      'http://x0000001.agents.localhost:8080',
      'ws://x0000001.agents.localhost:8080',
    ],
  ]
  for (const [env, baseUrl, wsUrl] of cases)
    it(`agent URLs have the scheme and port of ${JSON.stringify(env)}`, () => {
      assert.deepEqual(agentUrls(loadConfig(env), 'x0000001'), { baseUrl, wsUrl })
    })

  it("agent URLs begin with the agent's id if the API's own host is on their domain", () => {
    const config = loadConfig({ PUBLIC_URL: 'https://berth.example', BERTH_AGENT_DOMAIN: 'agents.example' })
    const api = new URL(agentsApiUrl(config))
    assert.equal(api.href, 'https://agents.example/')
    assert.equal(`${api.protocol}//x0000001.${api.host}`, agentUrls(config, 'x0000001').baseUrl)
  })
})

describe("Berth's URL", () => {
  for (const [env, origin] of [
    [{}, 'http://localhost:3000'],
    [{ HOST: '0.0.0.0', PORT: '80' }, 'http://localhost'],
    [{ HOST: '::1' }, 'http://[::1]:3000'],
    [{ PUBLIC_URL: 'https://berth.example/' }, 'https://berth.example'],
  ] as const)
    it(`Berth's URL is ${origin} with ${JSON.stringify(env)}`, () =>
      assert.equal(originOf(loadConfig(env)), origin))
})
