import { CID } from 'multiformats/cid'

/** The CID in a pasted text, which may be a URL such as `ipfs://…` or `https://…/ipfs/…`; undefined if none. */
export const cidIn = (text: string): string | undefined =>
  text
    .trim()
    .split(/[/:?#.\s]+/)
    .find(isCid)

function isCid(text: string): boolean {
  try {
    // Base32 may also be written in capitals.
    CID.parse(/^B[A-Z2-7]+$/.test(text) ? text.toLowerCase() : text)
    return true
  } catch {
    return false
  }
}
