import { fileTypeFromBuffer } from 'file-type'

/** Bytes from the beginning of a file that its type is told from. */
export const MIME_SAMPLE = 4100

/** The MIME type of a file, told from its first {@link MIME_SAMPLE} bytes. */
export async function mimeTypeOf(sample: Uint8Array): Promise<string> {
  const known = await fileTypeFromBuffer(sample)
  if (known) return known.mime
  return isText(sample) ? 'text/plain' : 'application/octet-stream'
}

function isText(sample: Uint8Array): boolean {
  if (sample.length === 0 || sample.includes(0)) return false
  try {
    // A character may be cut at the end of the sample: that is what `stream` lets pass.
    new TextDecoder('utf-8', { fatal: true }).decode(sample, { stream: true })
    return true
  } catch {
    return false
  }
}
