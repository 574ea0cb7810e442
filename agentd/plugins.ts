import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gatewayTree } from './gateway-process.ts'
import { readLines } from './lines.ts'
import type { Log } from './logs.ts'
import { memoryKills, outOfMemory } from './memory.ts'
import { engineCommand, parseLogLine } from './openclaw.ts'
import type { Paths } from './paths.ts'
import { endProcessTree } from './processes.ts'
import type { AgentdConfig } from './protocol.ts'

interface Options {
  config: AgentdConfig
  paths: Paths
  log: Log
  env: Record<string, string>
  /** For all of them together, each with its share of the rest; one takes 20 to 30 s on a fast connection. */
  limitMs: number
  signal: AbortSignal
}

/** A plugin that could not be installed. */
export interface PluginFailure {
  /** The engine's id of the plugin, and of its channel. */
  id: string
  /** The problem, in a sentence. */
  reason: string
}

/**
 * Installs plugins that are missing from the engine's state, one after another.
 *
 * A plugin that cannot be installed does not keep the gateway down: it belongs to one channel, and without the gateway
 * an unavailable registry would also cost the agent its other channels and chat. See {@link without}.
 *
 * @param specs in npm's form: `@openclaw/slack@2026.9.6`.
 */
export async function installPlugins(specs: string[], options: Options): Promise<PluginFailure[]> {
  const failures: PluginFailure[] = []
  const deadline = performance.now() + options.limitMs
  const installed = await Promise.all(specs.map((spec) => isInstalled(spec, options.paths)))
  const missing = specs.filter((_, i) => !installed[i])
  for (const [done, spec] of missing.entries()) {
    if (options.signal.aborted) break
    options.log.info(`installing plugin ${spec}`)
    // A plugin that hangs leaves time for the later ones.
    const limitMs = Math.max(0, deadline - performance.now()) / (missing.length - done)
    const failure = await install(spec, { ...options, limitMs })
    if (!failure) continue
    const reason = `plugin ${spec} could not be installed: ${failure}`
    options.log.error(reason)
    failures.push({ id: parseSpec(spec).name.replace(/^.*\//, ''), reason })
  }
  return failures
}

/**
 * Settings to apply over openclaw.json while these plugins are missing: otherwise the engine would search for an
 * enabled one itself, for minutes, before it is ready. The channel's other settings stay; the next start enables it
 * again.
 */
export function without(failures: PluginFailure[]): Record<string, unknown> {
  const off = Object.fromEntries(failures.map(({ id }) => [id, { enabled: false }]))
  return failures.length === 0 ? {} : { channels: off, plugins: { entries: off } }
}

/** True if the engine has the plugin in the requested version: each plugin is its own npm project. */
async function isInstalled(spec: string, { state }: Paths): Promise<boolean> {
  const { name, version } = parseSpec(spec)
  const projects = join(state, 'npm', 'projects')
  for (const project of await readdir(projects).catch(() => [])) {
    // An interrupted installation.
    if (project.startsWith('.')) continue
    const manifest = join(projects, project, 'node_modules', name, 'package.json')
    const text = await readFile(manifest, 'utf8').catch(() => '{}')
    if (version === undefined ? text !== '{}' : versionOf(text) === version) return true
  }
  return false
}

/** `@scope/name@1.2.3` → its name, and its version if given. */
function parseSpec(spec: string): { name: string; version?: string } {
  const at = spec.lastIndexOf('@')
  return at > 0 ? { name: spec.slice(0, at), version: spec.slice(at + 1) } : { name: spec }
}

function versionOf(manifest: string): unknown {
  try {
    return JSON.parse(manifest).version
  } catch {
    return undefined
  }
}

/** @returns the error, null if there was none. */
async function install(
  spec: string,
  { config, paths, log, env, limitMs, signal }: Options,
): Promise<string | null> {
  const { file, args } = engineCommand(config, ['plugins', 'install', spec])
  const kills = memoryKills()
  const child = spawn(file, args, {
    cwd: paths.state,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let lastLine = ''
  for (const stream of ['stdout', 'stderr'] as const)
    readLines(child[stream], (text) => {
      const line = { ...parseLogLine(text, stream), source: 'gateway/plugins' }
      lastLine = log.redact(line.message).slice(0, 300)
      log.add(line)
    })
  const limit = AbortSignal.timeout(Math.ceil(limitMs))
  const over = new AbortController()
  const ended = new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code) =>
      resolve(
        code === 0 ? null : (outOfMemory('the installation', kills) ?? (lastLine || `exit code ${code}`)),
      ),
    )
  }).finally(() => over.abort())
  await once(AbortSignal.any([limit, signal, over.signal]), 'abort')
  // Checked before the process is ended: its output after that is not the reason.
  const isOver = over.signal.aborted
  if (!isOver) await endProcessTree(gatewayTree(paths, child.pid ?? null), { graceMs: 1000, asked: 'group' })
  if (signal.aborted) return 'stopped'
  if (!isOver) return `not done after ${Math.round(limitMs / 1000)} s`
  const failure = await ended
  // The engine reports success even if, for example, an allowlist kept the plugin out.
  if (failure === null && !(await isInstalled(spec, paths)))
    return lastLine || 'it is not installed afterwards'
  return failure
}
