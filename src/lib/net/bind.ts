import { randomInt } from 'node:crypto'
import { chmod, lstat, mkdir, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { dirname } from 'node:path'
import { ConfigError } from '../../errors.ts'
import { tryLock } from '../process/file-lock.ts'

/** The address of a server, with the settings that define it. */
export interface Binding {
  host: string
  /** 0 picks a free port. */
  port: number
  settings: { host: string; port: string }
}

const PORT_ERRORS: Record<string, string> = {
  EADDRINUSE: 'is in use',
  EACCES: 'needs privileges that this process does not have',
}

/**
 * Starts to listen, and resolves with the port.
 * @throws ConfigError naming the setting if the port is taken or the address is not this machine's.
 */
export function bind(server: Server, { host, port, settings }: Binding): Promise<number> {
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => {
      const reason = PORT_ERRORS[error.code ?? '']
      if (reason) return reject(new ConfigError(`${settings.port}: ${port} ${reason} on ${host}`))
      reject(new ConfigError(`${settings.host}: cannot listen on ${host}: ${error.message}`))
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** Listens briefly to check that it is possible. @throws ConfigError as `bind` does. */
export async function assertBindable(binding: Binding): Promise<void> {
  const server = createServer()
  await bind(server, binding)
  await new Promise((resolve) => server.close(resolve))
}

/**
 * Starts to listen on a Unix socket that only this user may open (mode 600), replacing a socket whose owner has died.
 * @param setting names the path in messages.
 * @throws ConfigError if another process listens there, or the path cannot be a socket.
 */
export async function bindSocket(server: Server, path: string, setting: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    // If two processes find the same dead socket, the slower one would remove the faster one's new socket. (`.lock` was
    // a file with content up to 0.2.0, and may still exist.)
    const release = tryLock(`${path}.mutex`)
    if (!release) throw new ConfigError(`${setting}: another process is just starting on ${path}`)
    try {
      const there = await lstat(path).catch(() => undefined)
      if (there && !there.isSocket()) throw new ConfigError(`${setting}: ${path} is there and is no socket`)
      if (await answers(path)) throw new ConfigError(`${setting}: another process listens on ${path}`)
      await rm(path, { force: true })
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(path, () => {
          server.off('error', reject)
          resolve()
        })
      })
      await chmod(path, 0o600)
    } finally {
      release()
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(`${setting}: cannot listen on ${path}: ${(error as Error).message}`)
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (['ENOENT', 'ECONNREFUSED'].includes(error.code ?? '')) resolve(false)
      else reject(error)
    })
  })
}

/**
 * A free port on loopback that is not in `taken`, below the range that systems use for outgoing connections.
 * @throws ConfigError if there is none.
 */
export async function freePort(taken: ReadonlySet<number> = new Set()): Promise<number> {
  for (let tries = 0; tries < 200; tries++) {
    const port = randomInt(20_000, 30_000)
    if (!taken.has(port) && (await isFree(port))) return port
  }
  throw new ConfigError('there is no free port between 20000 and 29999 on 127.0.0.1')
}

/** True for a loopback port on which nobody listens. */
export function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
