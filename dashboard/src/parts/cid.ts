import { CID } from 'multiformats/cid'

/** The CID in a pasted text, which may be an address such as `ipfs://…` or `https://…/ipfs/…`; undefined if there is none. */
export const cidIn = (text: string): string | undefined =>
  text
    .trim()
    .split(/[/:?#.\s]+/)
    .find(isCid)

function isCid(text: string): boolean {
  try {
    // In capitals it is base32 as well.
    CID.parse(/^B[A-Z2-7]+$/.test(text) ? text.toLowerCase() : text)
    return true
  } catch {
    return false
  }
}
