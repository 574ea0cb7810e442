import { stat } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { resolve } from 'node:path/posix'
import { AgentdError, isErrno } from './agentd-errors.ts'
import { runCommand } from './command.ts'
import { type Paths, realPath } from './paths.ts'
import { AGENT_ROOT, type ExecEvent, type ExecRequest, type ExecResult } from './protocol.ts'
import type { Agent, Service } from './server.ts'

/** Each holds its output in memory, and its processes count towards the container's. */
const AT_ONCE = 16
const MAX_TIMEOUT_MS = 3_600_000
const MAX_OUTPUT_BYTES = 16_777_216
/** A command may be silent for long, and idle connections are closed. */
const KEEP_ALIVE_MS = 10_000

/**
 * `POST /v1/exec`: runs a shell command as the agent, with the gateway's environment. Bytes that are not UTF-8 are
 * replaced, and JSON may write a byte as six characters: a response has at most 6 × `outputBytes` bytes and a little.
 */
export function execService(agent: Agent): Service {
  let running = 0
  return {
    routes: [
      {
        method: 'POST',
        path: '/v1/exec',
        async handle(call) {
          const request = check(await call.json<ExecRequest>())
          const cwd = await workingFolder(agent.paths, request.cwd)
          if (running >= AT_ONCE) throw new AgentdError('busy', `${AT_ONCE} commands are already running`)
          running++
          try {
            const options = { ...request, cwd, env: agent.gateway.env, signal: call.signal }
            if (call.req.headers.accept?.includes('application/x-ndjson'))
              return await stream(call.res, options)
            return { body: await collect(options) }
          } finally {
            running--
          }
        },
      },
    ],
  }
}

type Options = Omit<Parameters<typeof runCommand>[1], 'onText'> & { command: string }

async function collect({ command, ...options }: Options): Promise<ExecResult> {
  const text = { stdout: '', stderr: '' }
  const end = await runCommand(command, {
    ...options,
    onText(stream, part) {
      text[stream] += part
      return undefined
    },
  })
  return { ...text, ...end }
}

async function stream(res: ServerResponse, { command, ...options }: Options): Promise<undefined> {
  const write = (line: string) => {
    if (!res.headersSent) res.writeHead(200, { 'content-type': 'application/x-ndjson' })
    return res.write(`${line}\n`)
  }
  const send = (event: ExecEvent) => write(JSON.stringify(event))
  const keepAlive = setInterval(() => res.writableLength === 0 && write(''), KEEP_ALIVE_MS)
  const exit = await runCommand(command, {
    ...options,
    onText: (name, text) => (send({ stream: name, text }) ? undefined : writable(res)),
  }).finally(() => clearInterval(keepAlive))
  send({ exit })
  res.end()
}

/** Resolves when more may be written, or nothing can be written any longer. */
function writable(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
    if (res.closed) done()
  })
}

function check(request: ExecRequest): ExecRequest {
  const { command, cwd, input, timeoutMs, outputBytes } = request ?? {}
  if (typeof command !== 'string' || command.trim() === '' || command.includes('\0'))
    throw new AgentdError('bad_request', 'command: must be a non-empty text')
  if (cwd !== undefined && (typeof cwd !== 'string' || cwd.includes('\0')))
    throw new AgentdError('bad_request', 'cwd: must be a path')
  if (input !== undefined && typeof input !== 'string')
    throw new AgentdError('bad_request', 'input: must be a text')
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw new AgentdError('bad_request', `timeoutMs: must be 1 to ${MAX_TIMEOUT_MS}`)
  if (!Number.isInteger(outputBytes) || outputBytes < 0 || outputBytes > MAX_OUTPUT_BYTES)
    throw new AgentdError('bad_request', `outputBytes: must be 0 to ${MAX_OUTPUT_BYTES}`)
  return {
    ...{ command, timeoutMs, outputBytes },
    ...(cwd !== undefined && { cwd }),
    ...(input !== undefined && { input }),
  }
}

/** The folder on this machine for the API's `cwd`; the agent's root by default. */
async function workingFolder(paths: Paths, cwd = ''): Promise<string> {
  const path = realPath(paths, resolve(AGENT_ROOT, cwd))
  const stats = await stat(path).catch((error) => {
    if (isErrno(error, 'ENOENT', 'ENOTDIR'))
      throw new AgentdError('not_found', 'cwd: there is no such folder')
    if (isErrno(error, 'EACCES', 'ENAMETOOLONG', 'ELOOP'))
      throw new AgentdError('bad_request', 'cwd: cannot be entered')
    throw error
  })
  if (!stats.isDirectory()) throw new AgentdError('bad_request', 'cwd: not a folder')
  return path
}
