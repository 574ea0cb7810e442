/** The limits of a skill's folder, whatever its source. */
import { BadSkill, readSkillMd, type SkillMd } from './skill-md.ts'

export const MAX_FILES = 500
export const MAX_BYTES = 8_388_608
const MAX_PATH_BYTES = 512
const MAX_NAME_BYTES = 255

/** A file of a skill; `path` is relative to its folder. */
export interface SkillFile {
  path: string
  bytes: Uint8Array
}

/**
 * Checks the files of a skill.
 * @throws BadSkill if there are too many files, if they are too large, if a name is not allowed in an agent's folder,
 *   or if there is no valid SKILL.md.
 */
export function checkSkill(files: readonly SkillFile[]): SkillMd {
  if (files.length > MAX_FILES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0)
  if (bytes > MAX_BYTES) throw new BadSkill(`it has more than ${MAX_BYTES} bytes`)
  if (new Set(files.map(({ path }) => path)).size < files.length)
    throw new BadSkill('two files have one path')
  for (const { path } of files)
    if (!isSafe(path)) throw new BadSkill(`it has a file with an invalid name: ${path}`)
  const skillMd = files.find(({ path }) => path === 'SKILL.md')
  if (!skillMd) throw new BadSkill('it has no file SKILL.md')
  return readSkillMd(skillMd.bytes)
}

/** True for a path that stays below its folder, and creates no git repository inside the agent's. */
function isSafe(path: string): boolean {
  if (!path.isWellFormed() || /[\0\\]/.test(path) || Buffer.byteLength(path) > MAX_PATH_BYTES) return false
  return path
    .split('/')
    .every(
      (name) =>
        !['', '.', '..', '.git'].includes(name.toLowerCase()) && Buffer.byteLength(name) <= MAX_NAME_BYTES,
    )
}
