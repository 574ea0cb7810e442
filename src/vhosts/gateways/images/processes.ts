/** The processes that convert images: a few, with limits on memory and time, started on demand. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { unavailable } from '../../../errors.ts'
import { orAborted, within } from '../../../lib/signals.ts'
import type { Logger } from '../../../log.ts'
import type { Conversion, ConversionAnswer, ConversionTask } from './convert.program.ts'

const PROGRAM = fileURLToPath(new URL('./convert.program.ts', import.meta.url))
/** A process ends after this time without an image. */
const IDLE_MS = 30_000
/** Address space that counts as data: what Node 24 uses itself, and the maximum per pixel. */
const NODE_KIB = 655_360
const BYTES_PER_PIXEL = 12
const STDERR_BYTES = 2000

/**
 * No core dumps, no files, a memory limit, and first to be killed if the machine runs out of memory. Limits that the
 * system does not support are skipped.
 */
const WITH_LIMITS = `ulimit -c 0; ulimit -f 0; ulimit -d "$1" 2>/dev/null
{ echo 900 >/proc/self/oom_score_adj; } 2>/dev/null
shift; exec "$@"`

export interface ImageLimits {
  /** How many images are converted at a time. */
  processes: number
  /** Maximum time of a conversion, and maximum wait for its turn. */
  seconds: number
  /** Maximum pixels of a source, all frames together. */
  maxPixels: number
}

/** A process died while converting an image, or was killed because it took too long. */
export class ConversionDied extends Error {
  override name = 'ConversionDied'
  /** The conversion took too long, possibly because of the options. */
  readonly wasSlow: boolean

  constructor(message: string, { wasSlow }: { wasSlow: boolean }) {
    super(message)
    this.wasSlow = wasSlow
  }
}

interface Slot {
  process?: ChildProcess | undefined
  idle?: NodeJS.Timeout | undefined
}

interface Waiting {
  workspaceId: string
  begin: (slot: Slot) => void
}

export class ImageProcesses {
  readonly #limits: ImageLimits
  readonly #log: Logger
  readonly #free: Slot[]
  readonly #slots: Slot[]
  readonly #waiting = new Set<Waiting>()
  /** Images in progress, by workspace. */
  readonly #running = new Map<string, number>()

  constructor(limits: ImageLimits, log: Logger) {
    this.#limits = limits
    this.#log = log
    this.#slots = Array.from({ length: limits.processes }, () => ({}))
    this.#free = [...this.#slots]
  }

  /**
   * Converts an image in its turn: workspaces with the fewest in progress come first.
   * @param gone fires when nobody waits for it: then it does not begin.
   * @param read returns the source, when it is needed.
   * @throws ApiError 503 if its turn does not come in time; ConversionDied; errors of `read`.
   */
  async convert(
    workspaceId: string,
    gone: AbortSignal,
    read: (signal: AbortSignal) => Promise<Uint8Array>,
    options: ConversionTask['options'],
  ): Promise<Conversion> {
    const { seconds, maxPixels } = this.#limits
    const slot = await this.#takeSlot(workspaceId, gone)
    try {
      const deadline = AbortSignal.timeout(seconds * 1000)
      const bytes = await orAborted(read(deadline), deadline).catch((error) => {
        throw deadline.aborted ? unavailable('The image was not read in time', error) : error
      })
      return await this.#run(slot, { bytes, options, maxPixels }, deadline)
    } finally {
      this.#giveBack(slot, workspaceId)
    }
  }

  close(): void {
    for (const slot of this.#slots) end(slot)
  }

  async #takeSlot(workspaceId: string, gone: AbortSignal): Promise<Slot> {
    const slot = this.#free.pop() ?? (await this.#wait(workspaceId, gone))
    clearTimeout(slot.idle)
    this.#running.set(workspaceId, (this.#running.get(workspaceId) ?? 0) + 1)
    return slot
  }

  async #wait(workspaceId: string, gone: AbortSignal): Promise<Slot> {
    const { promise, resolve } = Promise.withResolvers<Slot>()
    const waiting: Waiting = { workspaceId, begin: resolve }
    this.#waiting.add(waiting)
    try {
      return await orAborted(promise, within(this.#limits.seconds * 1000, gone))
    } catch (error) {
      // The request may get its turn at the very moment when it gives up.
      if (!this.#waiting.delete(waiting)) return promise
      throw unavailable('Too many images are being converted', error)
    }
  }

  #giveBack(slot: Slot, workspaceId: string): void {
    const left = (this.#running.get(workspaceId) ?? 0) - 1
    if (left > 0) this.#running.set(workspaceId, left)
    else this.#running.delete(workspaceId)
    const running = (waiting: Waiting) => this.#running.get(waiting.workspaceId) ?? 0
    // Sorting is stable for equal numbers.
    const [next] = [...this.#waiting].sort((a, b) => running(a) - running(b))
    if (next) {
      this.#waiting.delete(next)
      next.begin(slot)
    } else {
      this.#free.push(slot)
      slot.idle = setTimeout(() => end(slot), IDLE_MS).unref()
    }
  }

  async #run(slot: Slot, task: ConversionTask, deadline: AbortSignal): Promise<Conversion> {
    const isNew = !slot.process
    try {
      return await this.#ask(slot, task, deadline)
    } catch (error) {
      // A process that has converted others may have been killed before it got this image: a new process decides.
      if (isNew || deadline.aborted) throw error
      return await this.#ask(slot, task, deadline)
    }
  }

  async #ask(slot: Slot, task: ConversionTask, deadline: AbortSignal): Promise<Conversion> {
    slot.process ??= this.#start(slot)
    const child = slot.process
    const { promise, resolve, reject } = Promise.withResolvers<ConversionAnswer>()
    const onExit = (code: number | null, signal: string | null) =>
      // A crash in libvips ends a process by a signal; a process that exits by itself could not start.
      reject(
        signal
          ? new ConversionDied(`Converting the image ended with ${signal}`, { wasSlow: false })
          : unavailable(`Images cannot be converted: exit code ${code}`),
      )
    const onError = (error: Error) => reject(unavailable('Images cannot be converted', error))
    child.once('message', resolve).once('exit', onExit).once('error', onError)
    try {
      child.send(task, (error) => error && onError(error))
      const { conversion, isSpent } = await orAborted(promise, deadline)
      if (isSpent) end(slot)
      return conversion
    } catch (error) {
      end(slot)
      const { seconds } = this.#limits
      throw deadline.aborted
        ? new ConversionDied(`Converting the image took longer than ${seconds} s`, { wasSlow: true })
        : error
    } finally {
      child.off('message', resolve).off('exit', onExit).off('error', onError)
    }
  }

  #start(slot: Slot): ChildProcess {
    const { maxPixels } = this.#limits
    const kib = NODE_KIB + Math.ceil((maxPixels * BYTES_PER_PIXEL) / 1024)
    const program = [process.execPath, '--max-semi-space-size=1', PROGRAM]
    const child = spawn('/bin/sh', ['-c', WITH_LIMITS, 'sh', `${kib}`, ...program], {
      // No settings of Berth and no secrets: the process reads untrusted images.
      env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: '2', MALLOC_ARENA_MAX: '2' },
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    })
    let errors = ''
    child.stderr?.on('data', (chunk) => {
      errors = `${errors}${chunk}`.slice(-STDERR_BYTES)
    })
    child.on('error', (error) => this.#log.warn({ err: error }, 'no process converts images'))
    child.on('exit', () => {
      if (slot.process === child) slot.process = undefined
    })
    child.on('close', (code, signal) => {
      if (errors) this.#log.warn({ code, signal, errors }, 'a process that converts images has ended')
    })
    // The child and its channel do not keep this process alive: it can end when nothing else does.
    child.unref()
    child.channel?.unref()
    return child
  }
}

/** Ends the process of a slot, whatever it is doing. */
function end(slot: Slot): void {
  clearTimeout(slot.idle)
  slot.process?.kill('SIGKILL')
  slot.process = undefined
}
