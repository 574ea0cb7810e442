import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BucketPlaceOptions } from '../../../src/storage/embedded/bucket/place.ts'
import type { EmbeddedOptions } from '../../../src/storage/embedded.ts'
import { type PinProgress, StorageError, type StorageErrorCode } from '../../../src/storage/port.ts'
import type { NodeCalls } from './node.program.ts'

interface Reply {
  id?: number
  result?: unknown
  error?: { message: string; code: StorageErrorCode | null }
  progress?: PinProgress
}

/** An embedded node in a process of its own. */
export interface NodeProcess {
  call<Name extends keyof NodeCalls>(
    name: Name,
    ...args: Parameters<NodeCalls[Name]>
  ): ReturnType<NodeCalls[Name]>
  onProgress(listener: (progress: PinProgress) => void): void
  /** Ends the process with SIGKILL and waits for that. Calls under way reject. */
  kill(): Promise<void>
  /** Resolves once it has ended. */
  readonly ended: Promise<void>
}

/** Options of a node in another process. */
export interface NodeSettings extends Omit<EmbeddedOptions, 'place'> {
  /** Where its blocks are, if not in its folder. */
  bucket?: Omit<BucketPlaceOptions, 'log'>
}

/** A new temporary folder and how to remove it. */
export async function temporaryFolder(): Promise<{ dir: string; remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-storage-'))
  return { dir, remove: () => rm(dir, { recursive: true, force: true, maxRetries: 3 }) }
}

/** Starts a process with an embedded node on a folder, which it may share with others. */
export async function startNodeProcess(
  dir: string,
  options: Partial<NodeSettings> = {},
  env: Record<string, string> = {},
): Promise<NodeProcess> {
  const settings: NodeSettings = { dir, network: 'public', allowPrivate: true, ...options }
  const child: ChildProcess = fork(join(import.meta.dirname, 'node.program.ts'), [JSON.stringify(settings)], {
    serialization: 'advanced',
    execArgv: [],
    env: { ...process.env, ...env },
  })
  const waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>()
  const listeners = new Set<(progress: PinProgress) => void>()
  let lastId = 0

  child.on('message', ({ id, result, error, progress }: Reply) => {
    if (progress) for (const listener of listeners) listener(progress)
    if (id === undefined) return
    if (!error) waiting.get(id)?.resolve(result)
    else
      waiting
        .get(id)
        ?.reject(error.code ? new StorageError(error.code, error.message) : new Error(error.message))
    waiting.delete(id)
  })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  void exited.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('The node process has ended'))
  })
  const reply = (id: number) =>
    new Promise<unknown>((resolve, reject) => {
      waiting.set(id, { resolve, reject })
    })

  await reply(0)
  return {
    call: (name, ...args) => {
      const id = ++lastId
      const result = reply(id)
      child.send({ id, name, args })
      return result as ReturnType<NodeCalls[typeof name]>
    },
    onProgress: (listener) => listeners.add(listener),
    ended: exited,
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** A node in another process that has content for others, and its address. */
export async function startProvider(): Promise<{
  node: NodeProcess
  /** The node's folder. */
  dir: string
  address: string
  stop: () => Promise<void>
}> {
  const { dir, remove } = await temporaryFolder()
  const node = await startNodeProcess(dir, { listen: ['/ip4/127.0.0.1/tcp/0'] })
  const address = await node.call('address')
  return {
    node,
    dir,
    address,
    stop: async () => {
      await node.kill()
      await remove()
    },
  }
}
