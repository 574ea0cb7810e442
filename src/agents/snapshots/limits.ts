/** Most files that change from one snapshot to the next: an agent's disk bounds their bytes, not their names. */
export const MAX_CHANGES = 250_000
/** Most files of a workspace that is restored: it may have grown by many snapshots. */
export const MAX_FILES = 10_000_000
/** Most bytes of the paths of executable files, which are in the row. */
export const MAX_EXECUTABLES_BYTES = 8_388_608
/** Of a snapshot's diff, and of an agent's list of files. */
export const TEXT_BYTES = 65_536
