/** Skills in the engine of a running agent. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { AgentHost, type AgentSocket } from '../../support/agent-host.ts'
import { until } from '../../support/processes.ts'
import { skillMd, uploadFolder } from '../agents/skill-folders.ts'
import { openContext } from '../context.ts'
import { live, openChat, sharedAgent } from './context.ts'

/** The engine scans its folders about every second, or later on a busy machine. */
const SEEN_MS = 180_000

const context = await openContext()
const { api, path, agentId, record } = await sharedAgent(context)

describe('the engine of a running agent', () => {
  let socket: AgentSocket
  let last = 0
  const ask = async (method: string, params: object) => {
    const id = `${method}-${++last}`
    socket.send({ type: 'req', id, method, params })
    const answer = await until('the engine responds', () => socket.messages.find((one) => one.id === id))
    assert.equal(answer.ok, true, JSON.stringify(answer))
    return answer.payload
  }
  const knows = async (skill: string): Promise<boolean> =>
    (await ask('skills.status', {})).skills.some(({ name }: { name: string }) => name === skill)
  before(async () => {
    socket = await openChat(() => new AgentHost(context.url, agentId, record.gatewayToken).socket('/'))
    await ask('connect', {
      minProtocol: 3,
      maxProtocol: 4,
      client: { id: 'cli', version: '1.0.0', platform: 'linux', mode: 'cli' },
      role: 'operator',
      scopes: ['operator.read', 'operator.write'],
      auth: { token: record.gatewayToken },
    })
  })
  after(() => socket.raw.close())

  it('the engine of a running agent finds added and removed skills without a restart', async () => {
    const { processId } = (await live(api, path)).body
    const name = `seen-${Date.now().toString(36)}`
    const { cid: skillCid } = await uploadFolder(api, { 'SKILL.md': skillMd(name) })
    const { skillId } = (await api.post('/v0/skills', { skillCid, name })).body.skill
    assert.equal((await api.post(`${path}/skills`, { skillCids: [skillCid] })).status, 200)
    await until('the engine sees it', () => knows(name), SEEN_MS)
    assert.equal((await api.delete(`${path}/skills/${skillId}`)).status, 200)
    await until('the engine forgets it', async () => !(await knows(name)), SEEN_MS)
    assert.equal((await live(api, path)).body.processId, processId)
    await api.delete(`/v0/skills/${skillId}`)
  })
  it("the engine of a running agent knows Berth's own skill", async () => {
    assert.ok(await knows('platform'))
  })
})
