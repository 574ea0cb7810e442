/** Forwards the bytes of a connection, for agentd and for the agent proxy. */
import type { OnReadOpts } from 'node:net'
import type { Writable } from 'node:stream'

/** For requests and pages: every open connection has one. */
const SMALL = 16_384
/** For a connection that fills the small one: fewer and larger reads. */
const LARGE = 262_144

/**
 * The option `onread` of `net.connect` for a connection whose bytes all go to `to`, read into reused memory. Node's
 * streams allocate new memory for each read, and collecting it costs more than the bytes. The connection's user still
 * has to forward its end and errors, with `pipeline`.
 * @param resume resumes reading, once `to` has consumed the bytes.
 */
export function passTo(to: Writable, resume: () => void): OnReadOpts {
  let next = Buffer.allocUnsafeSlow(SMALL)
  let writes = 0
  return {
    buffer: () => next,
    callback(size, memory) {
      const bytes = memory.subarray(0, size)
      const write = ++writes
      let isWaiting = false
      to.write(bytes, () => {
        if (isWaiting && write === writes) resume()
      })
      if (size === SMALL && next.length === SMALL) next = Buffer.allocUnsafeSlow(LARGE)
      else if (size < SMALL && next.length === LARGE) next = Buffer.allocUnsafeSlow(SMALL)
      // Waits until the system has taken everything, because the memory is in use until then.
      isWaiting = to.writableLength > 0
      return !isWaiting
    },
  }
}
