/**
 * Costs that Berth adds to an agent in Docker, in time and memory. Its start is compared with `docker run` of the same
 * image and the engine's own boot, its console with `docker exec`, its tasks with the engine's CLI, and its chat with
 * the same gateway from within its container. Needs a Docker engine, see `scripts/ci/docker.sh`.
 */
import { execFile, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { BASE_IMAGE } from '../support/docker.ts'
import { enginesDir } from '../support/engines.ts'
import { startModel } from '../support/model.ts'
import { startStack } from '../support/stack.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { type BareGateway, bareConfig, startBareGateway } from './support/bare-gateway.ts'
import { median } from './support/numbers.ts'
import { proportionalBytes } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'
import { compare, ms, time } from './support/time.ts'

export const title = 'Agents'

const STARTS = 3
const COMMANDS = 30
const CLI_LISTS = 5
const API_LISTS = 100
const TURNS = 20
const MAX_OF_AGENTD = 45 * 2 ** 20
const OPENCLAW = '/opt/openclaw/node_modules/openclaw/openclaw.mjs'
const execute = promisify(execFile)

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const env = {
    BERTH_RUNTIME: 'docker',
    BERTH_BASE_IMAGE: BASE_IMAGE,
    BERTH_ENGINES_DIR: enginesDir,
    ...model.env,
  }
  const stack = await startStack({ kind: 'embedded', env })
  ending.defer(() => stack.stop())
  const api = new Api(stack, await stack.createKey())

  // The first agent builds the image; it is not measured.
  const warmUp = await api.create()
  const image = await imageOf(warmUp)
  await api.remove(warmUp)

  const starts: { berth: number; bare: number }[] = []
  const config = bareConfig(model.url)
  let agent: Agent | undefined
  let bare: BareGateway | undefined
  ending.defer(async () => {
    await bare?.stop()
    if (agent) await api.remove(agent)
  })
  for (let round = 0; round < STARTS; round++) {
    await bare?.stop()
    bare = undefined
    if (agent) await api.remove(agent)
    const began = performance.now()
    agent = await api.create()
    const berth = performance.now() - began
    bare = await startBareGateway(image, config)
    starts.push({ berth, bare: bare.readyMs })
  }
  if (!agent || !bare) throw new Error('nothing was started')
  return [
    compare('from the request to a running agent', starts, { goal: { atMost: 1.3 } }),
    compare('a console command', await commands(api, agent), { goal: { atMost: 0.12 } }),
    await tasks(api, agent),
    compare('a chat turn over HTTP', await turns(api, agent), { goal: { atMost: 1.15 } }),
    await memory(api, agent),
    await proportionalMemory(agent),
  ]
}

const containerOf = ({ agentId }: Agent) => `berth-${agentId}`

async function imageOf(agent: Agent): Promise<string> {
  const { stdout } = await execute('docker', ['inspect', '--format', '{{.Config.Image}}', containerOf(agent)])
  return stdout.trim()
}

async function commands(api: Api, agent: Agent): Promise<{ berth: number; bare: number }[]> {
  const rounds = []
  for (let i = -2; i < COMMANDS; i++) {
    const berth = await time(() =>
      api.call('POST', `/v0/agents/${agent.agentId}/console/exec`, { command: 'true' }),
    )
    const bare = await time(() => execute('docker', ['exec', containerOf(agent), 'sh', '-c', 'true']))
    if (i >= 0) rounds.push({ berth, bare }) // the first are the warm-up
  }
  return rounds
}

/** Berth asks the gateway; the engine's CLI is a process that first loads the engine. */
async function tasks(api: Api, agent: Agent): Promise<Result> {
  const list = () => api.call('GET', `/v0/agents/${agent.agentId}/tasks`)
  await list()
  const berth = []
  for (let i = 0; i < API_LISTS; i++) berth.push(await time(list))
  const bare = []
  const command = `OPENCLAW_GATEWAY_TOKEN=${agent.gatewayToken} node ${OPENCLAW} cron list --json`
  for (let i = 0; i < CLI_LISTS; i++) {
    bare.push(await time(() => execute('docker', ['exec', containerOf(agent), 'sh', '-c', command])))
  }
  const figures = { berth: median(berth), bare: median(bare) }
  return {
    what: 'a list of tasks: times as fast as the CLI',
    berth: ms(figures.berth),
    bare: ms(figures.bare),
    ratio: figures.bare / figures.berth,
    goal: { atLeast: 50 },
  }
}

/**
 * Through Berth, and to the same engine from within its container, because two engines differ by more than Berth adds.
 */
async function turns(api: Api, agent: Agent): Promise<{ berth: number; bare: number }[]> {
  const host = `${agent.agentId}.agents.localhost`
  const through = startTurns(process.execPath, ['-e', TURN, api.url, agent.gatewayToken, host])
  const inside = ['exec', '-i', containerOf(agent), 'node', '-e', TURN, ENGINE_URL, agent.gatewayToken]
  const direct = startTurns('docker', inside)
  try {
    const rounds = []
    for (let i = -3; i < TURNS; i++) {
      const round = { berth: await through.next(), bare: await direct.next() }
      if (i >= 0) rounds.push(round) // the first turns of an engine take seconds
    }
    return rounds
  } finally {
    through.end()
    direct.end()
  }
}

const ENGINE_URL = 'http://127.0.0.1:18789'
/**
 * A program that asks one question for each line that it reads, and prints the duration of the whole response in ms.
 * Node cannot resolve an agent's name, so the Host header carries it.
 */
const TURN = `
  const [url, token, host] = process.argv.slice(1)
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json', ...(host && { host }) }
  const messages = [{ role: 'user', content: 'ping' }]
  require('node:readline').createInterface(process.stdin).on('line', () => {
    const began = performance.now()
    require('node:http').request(url + '/v1/chat/completions', { method: 'POST', headers }, async (response) => {
      const answer = (await response.toArray()).join('')
      const good = response.statusCode === 200 && answer.includes('pong')
      console.log(good ? performance.now() - began : response.statusCode + ' ' + answer)
    }).end(JSON.stringify({ model: 'openclaw/default', user: 'bench', messages }))
  })`

function startTurns(program: string, args: string[]) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  return {
    async next(): Promise<number> {
      child.stdin.write('\n')
      const { value } = await lines.next()
      const took = Number(value)
      if (Number.isNaN(took)) throw new Error(`chat by ${program}: ${value}`)
      return took
    },
    end: () => child.stdin.end(),
  }
}

/** Resident memory of agentd, compared with all other processes in the container. */
async function memory(api: Api, agent: Agent): Promise<Result> {
  const command = `for p in /proc/[0-9]*; do
    echo "$(grep -a VmRSS $p/status | tr -dc 0-9) $(tr '\\0' ' ' < $p/cmdline)"
  done`
  const { stdout } = await api.call('POST', `/v0/agents/${agent.agentId}/console/exec`, { command })
  const processes = (stdout as string)
    .split('\n')
    .map((line) => ({ kib: Number.parseInt(line, 10) || 0, agentd: line.includes('/opt/agentd/') }))
  const sum = (agentd: boolean) =>
    processes.filter((one) => one.agentd === agentd).reduce((total, { kib }) => total + kib * 1024, 0)
  return {
    what: 'memory of agentd, and of the engine beside it',
    berth: mib(sum(true)),
    bare: mib(sum(false)),
    ratio: sum(true) / sum(false),
  }
}

/** Including agentd's share of the memory that it shares with others, which is mostly the Node binary. */
async function proportionalMemory(agent: Agent): Promise<Result> {
  const { stdout } = await execute('docker', ['inspect', '--format', '{{.State.Pid}}', containerOf(agent)])
  const init = stdout.trim()
  const [agentd] = (await readFile(`/proc/${init}/task/${init}/children`, 'utf8')).split(' ')
  const bytes = await proportionalBytes(Number(agentd))
  return {
    what: 'proportional memory of agentd, against 45 MiB',
    berth: mib(bytes),
    bare: mib(MAX_OF_AGENTD),
    ratio: bytes / MAX_OF_AGENTD,
    goal: { atMost: 1 },
  }
}

const mib = (n: number) => `${(n / 2 ** 20).toFixed(0)} MiB`

if (import.meta.main) print(title, await bench())
