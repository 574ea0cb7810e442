/** A skill: a folder on IPFS, added to the library, attached to the agent. */
import { exec, type Workspace } from './workspace.ts'

const SKILL = `---
name: tides
description: Says when the tide is high, for whoever has a berth.
---

# Tides

Ask for the harbour first. High water comes about 50 minutes later each day.
`

export async function addSkill(scene: Workspace): Promise<void> {
  const { screen, berth, agent, signal } = scene
  const cid = await screen.step('Skill', async () => {
    const form = new FormData()
    form.append('file', new Blob([SKILL]), 'tides/SKILL.md')
    form.append('pinataMetadata', JSON.stringify({ name: 'tides' }))
    const response = await fetch(`${berth.url}/pinning/pinFileToIPFS`, {
      method: 'POST',
      headers: { authorization: `Bearer ${berth.key}` },
      body: form,
      signal,
    })
    if (!response.ok) throw new Error(`upload: ${response.status} ${await response.text()}`)
    const { IpfsHash } = (await response.json()) as { IpfsHash: string }
    const body = { skillCid: IpfsHash, name: 'tides' }
    await berth.request('POST', '/v0/skills', { signal, body })
    await agent.call('POST', '/skills', { skillCids: [IpfsHash] })
    const read = await exec(scene, 'cat skills/tides/SKILL.md')
    if (read !== SKILL.trim()) throw new Error('the agent has another skill')
    return [IpfsHash, 'a folder on IPFS, in the library, and in the agent’s skills/tides']
  })
  screen.detail(cid)
}
