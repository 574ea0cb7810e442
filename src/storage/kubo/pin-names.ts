/**
 * Kubo keeps one recursive pin of a CID, with one name, and adding it again replaces the name. A pin
 * that somebody else made before Berth gets both names, `berth+<theirs>`, so that releasing it can
 * give it back as it was: Berth never removes what its user pinned.
 */
export interface PinNames {
  /** The name under which Berth pins a CID that has a pin called `existing` already (null: none). */
  claim(existing: string | null): string
  /** True for the name of a pin that is Berth's, even where it is somebody else's as well. */
  isOurs(name: string): boolean
  /** The name that is left when Berth releases a pin, or null when nobody else has it. */
  leftOver(name: string): string | null
}

/** Kubo refuses longer names. */
const NAME_LIMIT = 255

/** @param own The name of Berth's pins, without `+`. */
export function pinNames(own: string): PinNames {
  const shared = `${own}+`
  const isOurs = (name: string) => name === own || name.startsWith(shared)
  return {
    isOurs,
    claim: (existing) => {
      if (existing === null) return own
      return isOurs(existing) ? existing : cut(`${shared}${existing}`)
    },
    leftOver: (name) => (name.startsWith(shared) ? name.slice(shared.length) : null),
  }
}

function cut(name: string): string {
  return Buffer.byteLength(name) <= NAME_LIMIT
    ? name
    : new TextDecoder().decode(Buffer.from(name).subarray(0, NAME_LIMIT - 3))
}
