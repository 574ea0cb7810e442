import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort, holdUp } from './processes.ts'

const run = promisify(execFile)
const START_MS = 120_000

/** The Kubo binary that tests may use, or undefined: `scripts/ci/kubo.sh` builds one. */
export const kuboBinary = process.env.BERTH_TEST_KUBO || undefined

/** A private Kubo daemon: loopback only, no bootstrap peers, no routing, no gateway. */
export interface KuboNode {
  /** Address of the RPC API, the same after a restart. */
  apiUrl: string
  /** Where other nodes reach it, with `/p2p/<peer id>`, the same after a restart. */
  multiaddr: string
  /** `IPFS_PATH`, for example for `ipfs` commands of a test. */
  repo: string
  /** Kills the daemon at once (SIGKILL). */
  kill(): Promise<void>
  /** Hangs the daemon (SIGSTOP): it accepts connections and answers nothing, until `resume`. */
  pause(): Promise<void>
  resume(): void
  /** Starts the daemon again after `kill`. */
  restart(): Promise<void>
  /** Stops the daemon and removes its folder. */
  stop(): Promise<void>
}

/**
 * Starts a Kubo daemon in a new temporary folder, on free ports of 127.0.0.1.
 * @param within the parent of that folder.
 * @param asInstalled whether it is as `ipfs init` makes it, except for its addresses: blocks of 256 KiB, routing,
 * relays.
 * @throws Error if there is no binary or the daemon does not answer within 30 s.
 */
export async function startKubo(
  binary = kuboBinary,
  within = tmpdir(),
  { asInstalled = false } = {},
): Promise<KuboNode> {
  if (!binary) throw new Error('BERTH_TEST_KUBO is not set: it names the Kubo binary, see scripts/ci/kubo.sh')
  const repo = await mkdtemp(join(within, 'berth-kubo-'))
  const env = { ...process.env, IPFS_PATH: repo, IPFS_TELEMETRY: 'off' }
  const ipfs = async (...args: string[]) => (await run(binary, args, { env })).stdout.trim()

  await ipfs('init', ...(asInstalled ? [] : ['--empty-repo', '--profile=unixfs-v1-2025']))
  const [api, swarm] = [await freePort(), await freePort()]
  const addresses = {
    'Addresses.API': `/ip4/127.0.0.1/tcp/${api}`,
    'Addresses.Gateway': [],
    'Addresses.Swarm': [`/ip4/127.0.0.1/tcp/${swarm}`],
  }
  const alone = {
    AutoConf: { Enabled: false },
    'AutoTLS.Enabled': false,
    Bootstrap: [],
    'DNS.Resolvers': {},
    'Discovery.MDNS.Enabled': false,
    'Ipns.DelegatedPublishers': [],
    'Routing.DelegatedRouters': [],
    'Routing.Type': 'none',
    'Swarm.RelayClient.Enabled': false,
    'Swarm.Transports.Network.Relay': false,
  }
  for (const [key, value] of Object.entries({ ...addresses, ...(asInstalled ? {} : alone) }))
    await ipfs('config', '--json', key, JSON.stringify(value))
  const apiUrl = `http://127.0.0.1:${api}`
  const peerId = await ipfs('config', 'Identity.PeerID')

  let daemon = await startDaemon(binary, env, apiUrl)
  return {
    apiUrl,
    repo,
    multiaddr: `/ip4/127.0.0.1/tcp/${swarm}/p2p/${peerId}`,
    kill: () => end(daemon, 'SIGKILL'),
    pause: () => holdUp(daemon.pid as number),
    resume: () => void daemon.kill('SIGCONT'),
    restart: async () => {
      daemon = await startDaemon(binary, env, apiUrl)
    },
    stop: async () => {
      await end(daemon, 'SIGTERM')
      await rm(repo, { recursive: true, force: true })
    },
  }
}

async function startDaemon(binary: string, env: NodeJS.ProcessEnv, apiUrl: string): Promise<ChildProcess> {
  const daemon = spawn(binary, ['daemon', '--migrate=false'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  daemon.stderr?.on('data', (chunk) => {
    errors = (errors + chunk).slice(-4000)
  })
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline && daemon.exitCode === null) {
    const answer = await fetch(`${apiUrl}/api/v0/id`, { method: 'POST' }).catch(() => null)
    if (answer?.ok) return daemon
    await sleep(50)
  }
  await end(daemon, 'SIGKILL')
  throw new Error(`The Kubo daemon did not start: ${errors}`)
}

async function end(daemon: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return
  const exited = new Promise((resolve) => daemon.once('exit', resolve))
  daemon.kill(signal)
  const force = setTimeout(() => daemon.kill('SIGKILL'), 10_000)
  await exited
  clearTimeout(force)
}
