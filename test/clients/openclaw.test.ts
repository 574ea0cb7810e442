/**
 * OpenClaw's own clients, run against an agent's host: its command line, its terminal, and its web client in a browser.
 * They send the gateway token in the first WebSocket message, and pair as devices.
 */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { before, describe, it } from 'node:test'
import { promisify, stripVTControlCharacters } from 'node:util'
import { openContext } from '../contract/context.ts'
import { sharedAgent } from '../contract/openclaw/context.ts'
import { Browser } from '../support/browser.ts'
import { ENGINE_VERSION, enginesDir } from '../support/engines.ts'
import { useFolder } from '../support/folder.ts'
import { listen } from '../support/http-server.ts'
import { until } from '../support/processes.ts'
import { reportRun } from './report.ts'

const RUN_MS = 120_000
const program = join(enginesDir, ENGINE_VERSION, 'node_modules/openclaw/openclaw.mjs')
/** Berth's engines do not include it. */
const webClient = join(dirname(enginesDir), `openclaw-web-${ENGINE_VERSION}`)
const execute = promisify(execFile)

const context = await openContext()
const agent = await sharedAgent(context)
const token: string = agent.record.gatewayToken
const url = `ws://${agent.agentId}.agents.localhost:${new URL(context.url).port}`
/** The home of the user who runs the clients. */
const home = await useFolder('berth-openclaw-')

const lookup = join(home, 'lookup.mjs')
const env = {
  PATH: process.env.PATH,
  HOME: home,
  TERM: 'xterm',
  OPENCLAW_STATE_DIR: join(home, '.openclaw'),
  OPENCLAW_ALLOW_INSECURE_PRIVATE_WS: '1',
  NODE_OPTIONS: `--import=${lookup}`,
}
before(async () => {
  // Names below `localhost` do not resolve in Node, but lead to this machine in browsers.
  const resolver = `import dns from 'node:dns'
    const { lookup } = dns
    dns.lookup = (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest)`
  await writeFile(lookup, resolver)
})

/** Calls that ran successfully. */
const calls: string[] = []

interface Ran {
  stdout: string
  stderr: string
  failed: boolean
}

async function run(...args: string[]): Promise<Ran> {
  const options = { env, timeout: RUN_MS, maxBuffer: 2 ** 26 }
  try {
    return { ...(await execute(process.execPath, [program, ...args], options)), failed: false }
  } catch (error) {
    return { ...(error as { stdout: string; stderr: string }), failed: true }
  }
}

/** Raises the client's own timeout of 10 s, because a gateway on a busy machine takes longer. */
const call = (method: string) => ['gateway', 'call', method, '--timeout', '100000']

const waits = ({ stdout, stderr }: Ran) => /pairing required|scope upgrade/.test(stdout + stderr)
const approveAll = async (): Promise<string[]> =>
  (await agent.api.post(`${agent.path}/devices/approve-all`, {})).body.approved

/** The response to a command that succeeds, possibly after its device got more scopes. */
async function succeeds(...args: string[]): Promise<any> {
  let ran = await run(...args, '--json')
  if (waits(ran) && (await approveAll()).length > 0) ran = await run(...args, '--json')
  assert.equal(ran.failed, false, `${args.join(' ')}: ${ran.stdout}${ran.stderr}`)
  return JSON.parse(ran.stdout)
}

describe("OpenClaw's command line", () => {
  it("OpenClaw's command line calls the gateway with the given token", async () => {
    const health = [...call('health'), '--url', url, '--json', '--token']
    const [{ stdout, stderr, failed }, wrong] = await Promise.all([
      run(...health, token),
      run(...health, '11111111-1111-4111-8111-111111111111'),
    ])
    assert.equal(failed, false, stderr)
    assert.equal(JSON.parse(stdout).ok, true)
    calls.push('gateway call health')
    assert.equal(wrong.failed, true)
    assert.match(wrong.stdout, /This is not the gateway token of the agent/)
    calls.push('gateway call, with a wrong token')
  })
  it("OpenClaw's command line waits for approval as a device, and works afterwards", async () => {
    const settings = [
      { path: 'gateway.mode', value: 'remote' },
      { path: 'gateway.remote', value: { url, token } },
    ]
    const set = await run('config', 'set', '--batch-json', JSON.stringify(settings))
    assert.equal(set.failed, false, set.stderr)
    const asked = ['agent', '--agent', 'main', '--message', 'hello from outside', '--json']
    const first = await run(...asked)
    assert.deepEqual([first.failed, waits(first)], [true, true], first.stderr)
    const { pending } = (await agent.api.get(`${agent.path}/devices`)).body
    assert.deepEqual(
      pending.map(({ clientId, role }: { clientId: string; role: string }) => [clientId, role]),
      [['cli', 'operator']],
    )
    calls.push('pairing of the command line')
    assert.equal((await approveAll()).length, 1)
    const { stdout, stderr } = await run(...asked)
    assert.equal(JSON.parse(stdout).result.payloads[0].text, 'pong: hello from outside', stderr)
    calls.push('agent')
  })
  it("OpenClaw's command line shows sessions, devices and tasks, and changes tasks", async () => {
    const { sessions } = await succeeds(...call('sessions.list'))
    assert.ok(sessions.length > 0)
    const { paired } = await succeeds('devices', 'list')
    assert.equal(paired.length, 1)
    const task = ['--name', 'nightly', '--cron', '0 3 * * *', '--session', 'isolated', '--no-deliver']
    const { id } = await succeeds('cron', 'add', ...task, '--message', 'hello')
    const { jobs } = await succeeds('cron', 'list')
    assert.ok(jobs.some((job: { id: string }) => job.id === id))
    assert.equal((await succeeds('cron', 'rm', id)).ok, true)
    calls.push('gateway call sessions.list', 'devices list', 'cron add', 'cron list', 'cron rm')
  })
})

/** The terminal client in its own terminal. */
class Terminal {
  readonly #process
  #output = ''
  readonly exited: Promise<number | null>

  constructor() {
    const command = `stty cols 100 rows 40; exec '${process.execPath}' '${program}' tui --message 'hello from a terminal'`
    this.#process = spawn('script', ['-qec', command, '/dev/null'], { env })
    this.#process.stdout.on('data', (chunk) => {
      this.#output += chunk
    })
    this.exited = new Promise((resolve) => this.#process.once('exit', resolve))
  }

  get text(): string {
    return stripVTControlCharacters(this.#output)
  }

  type(text: string): void {
    this.#process.stdin.write(text)
  }

  async shows(text: RegExp): Promise<void> {
    const done = () => text.test(this.text) || this.#process.exitCode !== null
    await until(`the terminal shows ${text}`, done, RUN_MS).catch(() => {})
    assert.match(this.text, text)
  }

  end(): void {
    this.#process.kill('SIGKILL')
  }
}

describe("OpenClaw's terminal", () => {
  it("OpenClaw's terminal chats", async () => {
    const terminal = new Terminal()
    try {
      await terminal.shows(/hello from a terminal.*connected \| idle/s)
      terminal.type('typed by hand\r')
      await terminal.shows(/typed by hand.*typed by hand.*connected \| idle/s)
      terminal.type('/exit\r')
      assert.equal(await terminal.exited, 0)
    } finally {
      terminal.end()
    }
    calls.push('tui')
  })
})

const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
}

/** Serves the web client on loopback, as users may; resolves to its URL. */
async function serveWebClient(): Promise<string> {
  if (!existsSync(webClient)) {
    const draft = await mkdtemp(`${webClient}-`)
    const wanted = `openclaw@${ENGINE_VERSION}`
    await execute('npm', ['pack', '--silent', '--pack-destination', draft, wanted], { timeout: RUN_MS })
    const archive = join(draft, `openclaw-${ENGINE_VERSION}.tgz`)
    const place = join(draft, 'files')
    await mkdir(place)
    const inside = 'package/dist/control-ui'
    await execute('tar', ['-xzf', archive, '-C', place, '--strip-components=3', inside])
    await rename(place, webClient)
    await rm(draft, { recursive: true })
  }
  return listen(async (req, res) => {
    const path = new URL(req.url ?? '', 'http://localhost').pathname.replace(/\/$/, '/index.html')
    const file = await readFile(join(webClient, path)).catch(() => undefined)
    res.writeHead(file ? 200 : 404, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' })
    res.end(file)
  })
}

describe("OpenClaw's web client", () => {
  it("OpenClaw's web client connects from its own page, pairs and chats", async () => {
    const page = await serveWebClient()
    const browser = await Browser.start()
    try {
      await browser.open(`${page}/?gatewayUrl=${encodeURIComponent(url)}#token=${token}`)
      // The page asks for confirmation before it sends a token to another host.
      await browser.shows('Switch to')
      await browser.click('Switch to')
      await browser.shows('Approve this browser')
      calls.push('pairing of the web client')
      assert.equal((await approveAll()).length, 1)
      await browser.shows('hello from outside')
      const input = `document.querySelector('textarea')`
      await browser.evaluate(`${input}.focus()`)
      await browser.type('hello from a browser')
      await browser.press('Enter', 13)
      await browser.shows(/hello from a browser\s+Done in/)
      calls.push('chat of the web client')
    } finally {
      await browser.screenshot(process.env.BERTH_TEST_SCREENSHOT ?? join(home, 'screen.png'))
      await browser.close()
    }
  })
})

it("OpenClaw's clients got replies from the agent", async () => {
  const params = JSON.stringify({ sessionKey: 'main' })
  const { messages } = await succeeds(...call('chat.history'), '--params', params)
  const said = messages.filter(({ role }: { role: string }) => role === 'assistant')
  const texts = JSON.stringify(said)
  for (const text of ['from outside', 'from a terminal', 'typed by hand', 'from a browser'])
    assert.match(texts, new RegExp(`pong: .*${text}`))
  calls.push('gateway call chat.history')
})

it("docs/clients.md shows the run of OpenClaw's clients", async () => {
  assert.equal(new Set(calls).size, calls.length)
  await reportRun({
    client: 'OpenClaw: command line, terminal, web client in Chromium',
    version: ENGINE_VERSION,
    calls: calls.length,
    passed: calls.length,
  })
})
