/**
 * The checksum of zlib's streams (RFC 1950), which Node has only inside of them. In JavaScript it would cost more than
 * hashing the same bytes.
 */

/** adler32.wat, assembled. */
const PROGRAM =
  'AGFzbQEAAAABCAFgA39/fwF/AwIBAAUDAQAhBxQCBm1lbW9yeQIAB2FkbGVyMzIAAAr4AgH1AgIDfwV7/QwQDw4NDAsKCQgHBgUE' +
  'AwIBIQogAkH//wNxIQMgAkEQdiEEA0AgAUEQTwRAIAFBBHYhBSAFQdoCSwRAQdoCIQULIAEgBUEEdGshASAEIAMgBUEEdGxqIQT9' +
  'DAAAAAAAAAAAAAAAAAAAAAAhB/0MAAAAAAAAAAAAAAAAAAAAACEI/QwAAAAAAAAAAAAAAAAAAAAAIQkDQCAA/QAAACEGIAggB/2u' +
  'ASEIIAcgBv19/X/9rgEhByAJIAYgCv2eASAGIAr9nwH9jgH9f/2uASEJIABBEGohACAFQQFrIgUNAAsgCSAIQQT9qwH9rgEhCSAD' +
  'IAf9GwAgB/0bAWogB/0bAiAH/RsDampqQfH/A3AhAyAEIAn9GwAgCf0bAWogCf0bAiAJ/RsDampqQfH/A3AhBAwBCwsDQCABBEAg' +
  'AyAALQAAaiEDIAQgA2ohBCAAQQFqIQAgAUEBayEBDAELCyAEQfH/A3BBEHQgA0Hx/wNwcgs='

/** The program's memory. */
const MEMORY_BYTES = 33 * 65_536
const BASE = 65_521
/** Bytes whose sums stay below 2^53. */
const SUMMED_AT_ONCE = 65_536

/** Memory, and the checksum of what is in it. */
export interface Summed {
  memory: Buffer
  /** @param sum of the bytes before these; 1 for none. */
  adler32(from: number, to: number, sum: number): number
}

/** @param isQuick false for a processor without vectors, on which the program cannot run. */
export function openSummed(bytes: number, isQuick = canRun()): Summed {
  if (!isQuick || bytes > MEMORY_BYTES) return inJavaScript(bytes)
  const { memory, adler32 } = new WebAssembly.Instance(new WebAssembly.Module(program())).exports
  return {
    memory: Buffer.from(memory.buffer, 0, bytes),
    adler32: (from, to, sum) => adler32(from, to - from, sum) >>> 0,
  }
}

const program = () => Buffer.from(PROGRAM, 'base64')
const canRun = () => WebAssembly.validate(program())

/** The types of Node have it only for browsers. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: {
    validate(program: Buffer): boolean
    Module: new (program: Buffer) => object
    Instance: new (
      module: object,
    ) => {
      exports: {
        memory: { buffer: ArrayBuffer }
        adler32(at: number, length: number, sum: number): number
      }
    }
  }
}

function inJavaScript(bytes: number): Summed {
  const memory = Buffer.alloc(bytes)
  return {
    memory,
    adler32(from, to, sum) {
      let low = sum & 0xffff
      let high = sum >>> 16
      for (let at = from; at < to; ) {
        for (const until = Math.min(at + SUMMED_AT_ONCE, to); at < until; at++) {
          low += memory[at] as number
          high += low
        }
        low %= BASE
        high %= BASE
      }
      return high * 65_536 + low
    },
  }
}
