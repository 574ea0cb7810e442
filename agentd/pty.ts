/**
 * A pseudo-terminal with a program on it, without native code: agentd holds the controlling side, so that the kernel
 * hangs up the program when agentd ends, however it ends. Node has no ioctl; perl, which every Debian has, unlocks the
 * other side and becomes the program. `stty` could set the size only in two steps, each of which programs would see.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, constants, openSync, writeSync } from 'node:fs'
import { constants as system } from 'node:os'
import { text } from 'node:stream/consumers'
import { ReadStream } from 'node:tty'
import { AgentdError, isErrno } from './agentd-errors.ts'

export interface Size {
  columns: number
  rows: number
}

export interface PtyOptions extends Size {
  /** The program and its arguments. */
  command: [string, ...string[]]
  cwd: string
  env: Readonly<Record<string, string>>
}

/** The controlling side and the pipe for errors, in the child. */
const MASTER_FD = 3
const ERROR_FD = 4
/** TIOCSWINSZ, as all ioctls here on every processor that Node supports except PowerPC. Takes columns and rows. */
const RESIZE = `
open(my $master, '+<&=', ${MASTER_FD}) or die;
my $size = pack('S4', $ARGV[1], $ARGV[0], 0, 0);
ioctl($master, 0x5414, $size) or die;
`
/** TIOCSPTLCK and TIOCGPTN. Takes the program and its arguments. */
const OPEN = `
use POSIX ();
open(my $failed, '>&=', ${ERROR_FD});
sub fail { syswrite($failed, "$_[0]: $!"); POSIX::_exit(1) }
open(my $master, '+<&=', ${MASTER_FD}) or fail('ptmx');
my $none = pack('i', 0);
ioctl($master, 0x40045431, $none) or fail('unlock');
my $number = pack('i', 0);
ioctl($master, 0x80045430, $number) or fail('number');
POSIX::setsid();
my $path = '/dev/pts/' . unpack('i', $number);
open(my $slave, '+<', $path) or fail($path);
POSIX::dup2(fileno($slave), $_) for 0..2;
exec { $ARGV[0] } @ARGV or fail($ARGV[0]);
`
/** How often input is offered again to a program that does not read it. */
const RETRY_MS = 10
const NO_PERL = 'this sandbox cannot open terminals: perl is missing'

export class Pty {
  readonly pid: number
  /** Resolves to the exit code; 128 + the signal's number if a signal ended the program. */
  readonly exited: Promise<number>
  readonly #fd: number
  readonly #stream: ReadStream
  /** Input that the program has not read yet. */
  #input: Buffer = Buffer.alloc(0)
  #retry: NodeJS.Timeout | undefined
  #onDrain: () => void

  /** @param on.output called with bytes of the program. @param on.drain called when all input has been read. */
  private constructor(
    fd: number,
    child: ChildProcess,
    on: { output: (bytes: Buffer) => void; drain: () => void },
  ) {
    this.pid = child.pid as number
    this.#fd = fd
    this.#onDrain = on.drain
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? 128 + system.signals[signal as NodeJS.Signals]))
    })
    this.#stream = new ReadStream(fd)
    this.#stream.on('data', on.output)
    // EIO: no process has the terminal open any longer.
    this.#stream.on('error', () => {})
    this.#stream.once('close', () => clearTimeout(this.#retry))
  }

  /**
   * Starts a program in a new session, on a new terminal.
   * @throws AgentdError bad_request if the folder cannot be entered; busy if no process or terminal can be opened;
   *   unsupported if the sandbox has no perl, or no terminals.
   */
  static async open(
    { command, cwd, env, ...size }: PtyOptions,
    on: { output: (bytes: Buffer) => void; drain: () => void },
  ): Promise<Pty> {
    const fd = openMaster()
    try {
      await resize(fd, size)
      const stdio = ['ignore' as const, 'ignore' as const, 'ignore' as const, fd, 'pipe' as const]
      const child = spawn('perl', ['-e', OPEN, ...command], { cwd, env, stdio })
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject))
      const pty = new Pty(fd, child, on)
      const failure = await text(child.stdio[ERROR_FD] as NodeJS.ReadableStream)
      if (failure === '') return pty
      pty.close()
      throw new AgentdError('unsupported', `this sandbox cannot open terminals: ${failure}`)
    } catch (error) {
      if (error instanceof AgentdError) throw error
      closeSync(fd)
      if (isErrno(error, 'EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE'))
        throw new AgentdError('busy', 'no process can be started', { cause: error })
      // The folder was checked.
      if (isErrno(error, 'ENOENT')) throw new AgentdError('unsupported', NO_PERL, { cause: error })
      throw error
    }
  }

  /** Bytes of input that the program has not read yet. */
  get inputBytes(): number {
    return this.#input.length
  }

  write(bytes: Buffer): void {
    this.#input = this.#input.length === 0 ? bytes : Buffer.concat([this.#input, bytes])
    if (!this.#retry) this.#offer()
  }

  #offer(): void {
    this.#retry = undefined
    // Once the stream is closed, the number of its descriptor may belong to another file.
    if (this.#stream.destroyed) return
    try {
      while (this.#input.length > 0) this.#input = this.#input.subarray(writeSync(this.#fd, this.#input))
      this.#onDrain()
    } catch (error) {
      if (isErrno(error, 'EAGAIN')) this.#retry = setTimeout(() => this.#offer(), RETRY_MS)
      else this.close()
    }
  }

  /** Stops reading: the program waits once the kernel's buffer is full. */
  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  /** Changes the size; the kernel sends SIGWINCH if it is another one. */
  async resize(size: Size): Promise<void> {
    if (!this.#stream.destroyed) await resize(this.#fd, size)
  }

  /** Resolves when all output of an ended program has been read, or after `ms`. */
  async drained(ms: number): Promise<void> {
    if (this.#stream.closed) return
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, ms)
      this.#stream.once('close', () => {
        clearTimeout(late)
        resolve()
      })
    })
  }

  /** Hangs up: the kernel sends SIGHUP to the session's leader and to the foreground. */
  close(): void {
    this.#stream.destroy()
  }
}

function openMaster(): number {
  try {
    const { O_RDWR, O_NOCTTY, O_NONBLOCK } = constants
    return openSync('/dev/ptmx', O_RDWR | O_NOCTTY | O_NONBLOCK)
  } catch (error) {
    if (isErrno(error, 'ENOSPC', 'EMFILE', 'ENFILE'))
      throw new AgentdError('busy', 'no more terminals can be opened', { cause: error })
    throw new AgentdError('unsupported', `this sandbox has no terminals: ${(error as Error).message}`)
  }
}

/** Sets the size. The descriptor is above 2, because Node would make a lower one block. */
async function resize(fd: number, { columns, rows }: Size): Promise<void> {
  const stdio = ['ignore' as const, 'ignore' as const, 'ignore' as const, fd]
  const child = spawn('perl', ['-e', RESIZE, `${columns}`, `${rows}`], { stdio })
  await new Promise((resolve, reject) => child.once('exit', resolve).once('error', reject))
}
