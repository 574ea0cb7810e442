/** A disk helper with a small image, in a separate mount namespace, like in a container. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { DiskHelper } from '../../src/sandboxes/docker/disk-helper.ts'
import { until } from './processes.ts'

const run = promisify(execFile)
const MAIN = join(import.meta.dirname, '../../src/main.ts')
const POOL_MB = 512
/** The capabilities of the service in docker-compose.yml. */
const CAPABILITIES = '-all,+sys_admin,+dac_override,+fowner'

/** Why disk helpers cannot run here; false if they can. */
export async function whyNoDisks(): Promise<string | false> {
  if (process.getuid?.() !== 0) return 'only root may mount'
  try {
    await run('mkfs.btrfs', ['--version'])
    await run('unshare', ['--mount', 'losetup', '--find'])
  } catch (error) {
    return `no btrfs-progs, or no right to mount: ${(error as Error).message}`
  }
  return false
}

export class TestDisks {
  readonly dir: string
  readonly socket: string
  readonly helper: DiskHelper
  #child: ChildProcess | undefined
  output = ''

  private constructor(dir: string) {
    this.dir = dir
    this.socket = join(dir, 'disks.sock')
    this.helper = new DiskHelper(this.socket)
  }

  /** @param crashAt the point at which it kills itself. @param env settings in addition to those that it needs. */
  static async start(crashAt?: CrashPoint, env?: NodeJS.ProcessEnv): Promise<TestDisks> {
    const dir = await mkdtemp(join(tmpdir(), 'berth-disks-'))
    await chmod(dir, 0o711)
    const disks = new TestDisks(dir)
    await disks.boot(crashAt, env)
    return disks
  }

  /** Starts it, including after it was killed. */
  async boot(crashAt?: CrashPoint, env: NodeJS.ProcessEnv = {}): Promise<void> {
    const asInCompose = [
      '--mount',
      'setpriv',
      `--bounding-set=${CAPABILITIES}`,
      '--inh-caps=-all',
      '--no-new-privs',
    ]
    const child = spawn('unshare', [...asInCompose, process.execPath, MAIN, 'disks'], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        BERTH_DATA_DIR: this.dir,
        BERTH_DISKS_SOCKET: this.socket,
        BERTH_DISKS_DIR: this.dir,
        BERTH_DISKS_MB: String(POOL_MB),
        BERTH_DISK_RESERVE_MB: '16',
        ...env,
        ...(crashAt && { BERTH_CRASH_AT: `${crashAt}@${join(this.dir, crashAt)}` }),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        this.output += chunk
      })
    await until('the disk helper answers, or has ended', async () => {
      if (child.exitCode !== null || child.signalCode !== null) return true
      return this.helper.list(undefined).then(
        () => true,
        () => false,
      )
    })
  }

  get hasEnded(): boolean {
    return this.#child?.exitCode !== null || this.#child?.signalCode !== null
  }

  async kill(): Promise<void> {
    if (this.hasEnded) return
    const ended = once(this.#child as ChildProcess, 'exit')
    this.#child?.kill('SIGKILL')
    await ended
  }

  /** The loop devices of its image. */
  async loops(): Promise<string[]> {
    const { stdout } = await run('losetup', ['--noheadings', '--output', 'NAME', '--associated', this.image])
    return stdout.split('\n').filter(Boolean)
  }

  /** Disks that are being removed; empty once they are gone. */
  async leftovers(): Promise<string> {
    const mount = join(this.dir, 'mnt')
    const pid = String(this.#child?.pid)
    const { stdout } = await run('nsenter', ['--target', pid, '--mount', 'ls', join(mount, 'berth-removed')])
    return stdout
  }

  /** Names of its files, except locks and the files of this test. */
  async files(): Promise<string[]> {
    return (await readdir(this.dir)).filter((name) => /^(device|disks\.img)/.test(name)).sort()
  }

  get image(): string {
    return join(this.dir, 'disks.img')
  }

  /** Removes mounts and loop devices, once no container uses them. */
  async close(): Promise<void> {
    await this.kill()
    for (const loop of await this.loops().catch(() => [])) await run('losetup', ['--detach', loop])
    await rm(this.dir, { recursive: true, force: true })
  }
}
