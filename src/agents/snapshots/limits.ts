/** Most files of a workspace that is stored or restored: its bytes are bounded by the agent's disk, its names are not. */
export const MAX_FILES = 250_000
/** Most bytes of the paths of executable files, which are in the row. */
export const MAX_EXECUTABLES_BYTES = 8_388_608
/** Of a snapshot's diff, and of an agent's list of files. */
export const TEXT_BYTES = 65_536
