/** The entries of a tar. */
import type { Readable, Transform } from 'node:stream'
import { extract } from 'tar-stream'

type Entries = ReturnType<typeof extract>

/** Reads a tar by way of what unpacks it, entry after entry: each is to be read or resumed before the next one comes. */
export function readTar(source: Readable, unpack?: Transform): Entries {
  const entries = extract()
  const fail = (error: Error) => entries.destroy(error)
  source.on('error', fail)
  const bytes = unpack ? source.pipe(unpack) : source
  unpack?.on('error', fail)
  bytes.pipe(entries as unknown as NodeJS.WritableStream)
  return entries
}
