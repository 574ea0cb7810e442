/** Bytes `start` to `end` of a file, both included. */
export interface ByteRange {
  start: number
  end: number
}

/**
 * What a `Range` header asks for (RFC 9110, 14.2). Undefined for the whole file: without the header, in another
 * unit, where it is malformed, and for several ranges, which a server may answer with the whole.
 * @param size of the file, in bytes.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first, last] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? '') ?? []
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined
  if (first === '') {
    const length = Math.min(Number(last), size)
    return length === 0 ? 'unsatisfiable' : { start: size - length, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}
