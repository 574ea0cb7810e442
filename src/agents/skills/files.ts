/** The limits of a skill's folder, wherever it comes from. */
import { BadSkill, readSkillMd, type SkillMd } from './skill-md.ts'

export const MAX_FILES = 500
export const MAX_BYTES = 8_388_608
const MAX_PATH_BYTES = 512
const MAX_NAME_BYTES = 255

/** A file of a skill; `path` is below its folder. */
export interface SkillFile {
  path: string
  bytes: Uint8Array
}

/**
 * Checks the files of a skill.
 * @throws BadSkill where there are too many or too large ones, one has a name that an agent's folder must not have, or
 *   there is no good SKILL.md.
 */
export function checkSkill(files: readonly SkillFile[]): SkillMd {
  if (files.length > MAX_FILES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0)
  if (bytes > MAX_BYTES) throw new BadSkill(`it has more than ${MAX_BYTES} bytes`)
  if (new Set(files.map(({ path }) => path)).size < files.length)
    throw new BadSkill('two files have one path')
  for (const { path } of files)
    if (!isSafe(path)) throw new BadSkill(`it has a file of a name that cannot be: ${path}`)
  const skillMd = files.find(({ path }) => path === 'SKILL.md')
  if (!skillMd) throw new BadSkill('it has no file SKILL.md')
  return readSkillMd(skillMd.bytes)
}

/** True for a path that stays below its folder, and makes no repository within the agent's. */
function isSafe(path: string): boolean {
  if (!path.isWellFormed() || /[\0\\]/.test(path) || Buffer.byteLength(path) > MAX_PATH_BYTES) return false
  return path
    .split('/')
    .every(
      (name) =>
        !['', '.', '..', '.git'].includes(name.toLowerCase()) && Buffer.byteLength(name) <= MAX_NAME_BYTES,
    )
}
