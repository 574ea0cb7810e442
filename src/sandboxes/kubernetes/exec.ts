/**
 * Commands in a pod through the API server, used only for homes, measurements and the network check. Everything else
 * goes through agentd.
 */
import { PassThrough, Writable } from 'node:stream'
import type { V1Status } from '@kubernetes/client-node'
import { SandboxError } from '../../errors.ts'
import type { Cluster } from './cluster.ts'
import { AGENT } from './pod-spec.ts'

/** The API server's protocol: the first byte of a frame is its stream; 255 closes the stream named by the next byte. */
const INPUT = Buffer.from([0])
const END_OF_INPUT = Buffer.from([255, 0])
const FRAME_BYTES = 64 * 1024
const KEPT_ERRORS = 2000

export interface ExecOptions {
  input?: AsyncIterable<Uint8Array>
  signal?: AbortSignal | undefined
  /** Exit codes besides 0 that do not count as failures. */
  allowed?: number[]
}

/** Yields a command's output, no faster than it is consumed. @throws SandboxError if the command fails. */
export async function* execIn(
  cluster: Cluster,
  pod: string,
  command: string[],
  { input, signal, allowed = [] }: ExecOptions = {},
): AsyncGenerator<Uint8Array> {
  const output = new PassThrough({ highWaterMark: 1_048_576 })
  const { promise: ended, resolve: end, reject: fail } = Promise.withResolvers<V1Status>()
  ended.catch((error) => output.destroy(error))
  let errors = ''
  let pause = () => {}
  const connection = await cluster.call('exec', { signal }, ({ library, config }) =>
    new library.Exec(config)
      .exec(
        cluster.namespace,
        pod,
        AGENT,
        command,
        // The client has no backpressure, so a full buffer pauses the connection.
        new Writable({
          write(chunk, _, done) {
            if (!output.write(chunk)) pause()
            done()
          },
          final(done) {
            output.end()
            done()
          },
        }),
        new Writable({
          write(chunk, _, done) {
            errors = `${errors}${chunk}`.slice(-KEPT_ERRORS)
            done()
          },
        }),
        input ? new PassThrough() : null,
        false,
        end,
      )
      .catch(throwAsError),
  )
  pause = () => connection.pause()
  output.on('drain', () => connection.resume())
  connection.on('close', () =>
    fail(new SandboxError('unreachable', 'the connection into a pod of the cluster broke off')),
  )
  connection.on('error', fail)
  const abort = () => fail(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    if (input) send(connection, input).catch(fail)
    yield* output
    const status = await ended
    const code = exitCodeOf(status)
    if (code !== 0 && !allowed.includes(code))
      throw new SandboxError('internal', `${command[0]} failed in the pod (${code}): ${errors.trim()}`)
  } finally {
    signal?.removeEventListener('abort', abort)
    connection.terminate()
  }
}

/** The client rejects with its WebSocket's event. */
function throwAsError({ error, message }: { error?: Error; message?: string }): never {
  throw error ?? new Error(message)
}

type Connection = { send(data: Uint8Array, done: (error?: Error) => void): void }

/** Sends each piece after the previous one has been written. */
async function send(connection: Connection, input: AsyncIterable<Uint8Array>): Promise<void> {
  const write = (frame: Uint8Array) =>
    new Promise<void>((resolve, reject) =>
      connection.send(frame, (error) => (error ? reject(error) : resolve())),
    )
  for await (const chunk of input)
    for (let at = 0; at < chunk.length; at += FRAME_BYTES)
      await write(Buffer.concat([INPUT, chunk.subarray(at, at + FRAME_BYTES)]))
  await write(END_OF_INPUT)
}

function exitCodeOf({ status, details }: V1Status): number {
  if (status === 'Success') return 0
  const cause = details?.causes?.find(({ reason }) => reason === 'ExitCode')
  return Number(cause?.message ?? -1)
}
