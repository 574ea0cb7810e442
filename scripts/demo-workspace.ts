/**
 * `npm run demo:workspace`: what makes an agent someone's own, on the real engine.
 *
 * The demo creates an agent from a template and gives it a skill from IPFS. The agent changes its workspace, which is
 * saved as a snapshot on IPFS. Its repository is cloned, changed and pushed, which starts its build. Then it is reset
 * to the first snapshot, and restored after everything of it on this machine was removed. Finally a domain, verified
 * against a DNS server on loopback, leads to its page; a real browser opens it if one is installed.
 *
 * Agents run in Docker if it answers, otherwise as processes; `-- --runtime docker` or `-- --runtime process` selects
 * one. The demo stops everything that it starts and removes all data, even on Ctrl-C.
 */
import { join } from 'node:path'
import { startDnsServer } from '../test/support/dns.ts'
import { enginesDir } from '../test/support/engines.ts'
import { startModel } from '../test/support/model.ts'
import { AGENT_DOMAIN, createAgent, removeAgent } from './demo/agent-steps.ts'
import { startBerth } from './demo/berth.ts'
import { type Demo, runDemo } from './demo/run.ts'
import { openDomain } from './demo/workspace-domain.ts'
import { cloneAndPush } from './demo/workspace-git.ts'
import { addSkill } from './demo/workspace-skill.ts'
import { lose, reset, save } from './demo/workspace-snapshots.ts'

const LIMIT_MS = 10 * 60_000
const TEMPLATE = 'page'
/** The port of the template's page in the agent. */
const PAGE_PORT = 4180

await runDemo({ title: 'An agent of one’s own', limitMs: LIMIT_MS }, demo)

async function demo({ screen, stack, signal, temp, parts, runtime }: Demo): Promise<void> {
  const began = performance.now()
  const dns = await startDnsServer()
  stack.defer(() => dns.close())
  const model = await startModel()
  stack.defer(() => model.stop())
  const env = {
    ...(runtime && { BERTH_RUNTIME: runtime }),
    // The only setting of the shell that counts: without a registry, no other image may be available.
    BERTH_BASE_IMAGE: process.env.BERTH_BASE_IMAGE ?? '',
    BERTH_ENGINES_DIR: enginesDir,
    BERTH_AGENT_DOMAIN: AGENT_DOMAIN,
    BERTH_DNS_SERVER: dns.address,
    ...model.env,
  }
  const berth = await screen.step('Berth', async () => {
    const berth = await startBerth({ dataDir: join(temp, 'berth'), parts, stack, signal, env })
    return [berth, `${berth.url}, a model and a DNS server beside it on loopback`]
  })

  screen.section(`An agent from the template “${TEMPLATE}”`)
  const agent = await createAgent({ screen, signal }, berth, { name: 'Demo', templateId: TEMPLATE })
  stack.defer(() => removeAgent(berth, agent))
  const scene = { screen, signal, temp, berth, agent }

  screen.section('Skills and snapshots')
  await addSkill(scene)
  const first = await save(scene)

  screen.section('Git')
  await cloneAndPush(scene)

  screen.section('Back')
  await reset(scene, first)
  await lose(scene, { ...env, BERTH_DATA_DIR: join(temp, 'berth') })

  screen.section('A domain')
  await openDomain(scene, dns, PAGE_PORT)
  screen.summary(`All of it in ${((performance.now() - began) / 1000).toFixed(1)} s.`)
}
