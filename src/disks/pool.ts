/**
 * The btrfs file system for agents' disks: in an image file attached to a loop device, or on a device that the operator
 * provides. Opening it can be killed at any line and repeated; after a reboot, opening restores everything.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ConfigError } from '../errors.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { removeLeftovers, renameDurably, temporaryName } from '../lib/files.ts'
import { tryLock } from '../lib/process/file-lock.ts'

export interface PoolOptions {
  /** BERTH_DISKS_DIR: the image, and the link to the device; the same path here and for Docker. */
  dir: string
  /** BERTH_DISKS_DEVICE; undefined: an image in `dir`. */
  device: string | undefined
  /** Size of the image, which may grow between starts. */
  imageBytes: number | undefined
}

export interface Pool {
  /** A path that leads to the device, which may change with each reboot. */
  device: string
  /** Where the whole file system is mounted, for this process only. */
  mount: string
  /** The kernel's folder of quota groups. */
  qgroups: string
  /** Lets another process open the pool. Keep a reference until then: a garbage-collected lock releases itself. */
  release(): void
}

/**
 * The kernel's number for simple quotas, which count subvolumes created by an agent as the agent's own. Needs Linux
 * 6.7.
 */
const SIMPLE = 4
/**
 * BTRFS_IOC_QUOTA_CTL with {@link SIMPLE}. `btrfs quota enable` supports it since btrfs-progs 6.7; Debian 12 has 6.2.
 */
const ENABLE = `open(my $fs, '<', $ARGV[0]) or die "$!\\n"; my $args = pack('QQ', ${SIMPLE}, 0);
  ioctl($fs, 0xC0109428, $args) or die "$!\\n"`

/** Creates the file system if it does not exist, mounts it, and turns its quotas on. @throws ConfigError, Error */
export async function openPool({ dir, device, imageBytes }: PoolOptions): Promise<Pool> {
  await mkdir(dir, { recursive: true, mode: 0o711 })
  const release = tryLock(join(dir, 'lock'))
  if (!release) throw new ConfigError(`BERTH_DISKS_DIR: another disk helper runs on ${dir}`)
  const block = device ?? (await attachImage(join(dir, 'disks.img'), imageBytes))
  const link = join(dir, 'device')
  crashPoint('disks-after-attach')
  await replaceLink(block, link)
  const mount = join(dir, 'mnt')
  await mkdir(mount, { recursive: true, mode: 0o700 })
  // A killed disk helper leaves the mount behind if it had no mount namespace of its own.
  await run('umount', [mount]).catch(() => {})
  // Without discards the image keeps its allocated space, so an agent's write never fails because the disk below is
  // full.
  const options = device ? 'subvolid=5' : 'subvolid=5,nodiscard'
  await run('mount', ['-t', 'btrfs', '-o', options, block, mount])
  crashPoint('disks-after-mount')
  if (!device) await run('btrfs', ['filesystem', 'resize', 'max', mount])
  // Not from blkid's cache, which remembers what the loop device held before.
  const uuid = await run('blkid', ['--probe', '-s', 'UUID', '-o', 'value', block])
  const qgroups = `/sys/fs/btrfs/${uuid.trim()}/qgroups`
  await enableQuotas(mount, qgroups)
  return { device: link, mount, qgroups, release }
}

/** @returns the loop device of the image, which stays the same while the image is attached. */
async function attachImage(image: string, bytes: number | undefined): Promise<string> {
  await removeLeftovers(image, 0)
  if (!existsSync(image)) {
    if (bytes === undefined)
      throw new ConfigError('BERTH_DISKS_MB: set it to the size of the image, or BERTH_DISKS_DEVICE')
    const fresh = temporaryName(image)
    try {
      await writeFile(fresh, '', { mode: 0o600 })
      await run('fallocate', ['-l', String(bytes), fresh])
      crashPoint('disks-mid-image')
      await run('mkfs.btrfs', ['--quiet', fresh])
      await renameDurably(fresh, image)
    } finally {
      await rm(fresh, { force: true })
    }
  } else if (bytes !== undefined && bytes > (await stat(image)).size) {
    await run('fallocate', ['-l', String(bytes), image])
  }
  // `--nooverlap` finds an image that is already attached.
  const block = (await run('losetup', ['--nooverlap', '--find', '--show', image])).trim()
  await run('losetup', ['--set-capacity', block])
  return block
}

async function replaceLink(target: string, path: string): Promise<void> {
  const fresh = temporaryName(path)
  await removeLeftovers(path, 0)
  await symlink(target, fresh)
  await rename(fresh, path)
}

async function enableQuotas(mount: string, qgroups: string): Promise<void> {
  const mode = await readMode(qgroups)
  if (mode === 'squota') return
  if (mode !== undefined)
    throw new ConfigError('BERTH_DISKS_DEVICE: it has quotas of the other kind (`btrfs quota disable`)')
  if (!existsSync('/sys/fs/btrfs/features/simple_quota'))
    throw new ConfigError(
      'BERTH_DISKS_SOCKET: this kernel has no simple quotas of btrfs; they need Linux 6.7',
    )
  await run('perl', ['-e', ENABLE, mount])
}

/** Undefined while quotas are off. */
async function readMode(qgroups: string): Promise<string | undefined> {
  return (await readFile(join(qgroups, 'mode'), 'utf8').catch(() => undefined))?.trim()
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** Reserving space for a large image takes as long as its file system needs. */
const RUN_MS = 300_000

/** Runs a system program. @returns its output. @throws Error with its error output. */
export async function run(program: string, args: string[]): Promise<string> {
  try {
    const options = { env: { PATH, LC_ALL: 'C' }, timeout: RUN_MS, maxBuffer: 64 * 1024 * 1024 }
    return (await promisify(execFile)(program, args, options)).stdout
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`${program} ${args[0]}: ${stderr?.trim() || message}`, { cause: error })
  }
}
