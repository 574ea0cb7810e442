import { CID } from 'multiformats/cid'

/**
 * The CID profile of what Berth imports (IPIP-499): CIDv1, raw leaves, chunks of 1 MiB,
 * 1,024 links in a node.
 */
export const PROFILE = 'unixfs-v1-2025'

/** The profile of imports that ask for a CIDv0: leaves of 256 KiB in dag-pb, 174 links in a node. */
export const PROFILE_V0 = 'unixfs-v0-2015'

/** One byte more than a chunk of the profile, so that chunk size, leaves and root all show in the CID. */
export const PROBE_BYTES = new Uint8Array(1024 * 1024 + 1)

/** What {@link PROBE_BYTES} become under {@link PROFILE}. */
export const PROBE_CID = CID.parse('bafybeihd4yzq7n5umhjngdum4r6k2to7egxfkf2jz6thvwzf6djus22cmq')
