/** A zip that comes from outside, as the files of a skill. */
import { fromBufferPromise } from 'yauzl'
import { MAX_BYTES, MAX_FILES, type SkillFile } from '../skills/files.ts'
import { BadSkill } from '../skills/skill-md.ts'

const FILE_TYPE = 0o170000
const REGULAR = 0o100000
/** Folders are entries as well. */
const MAX_ENTRIES = 2 * MAX_FILES

/**
 * The files in a zip. A folder around them all is left out.
 * @throws BadSkill for what is no zip, has links, names that leave the folder, or more in it than a skill may have.
 */
export async function unzipSkill(bytes: Buffer): Promise<SkillFile[]> {
  try {
    return withoutFolder(await unzip(bytes))
  } catch (error) {
    if (error instanceof BadSkill) throw error
    throw new BadSkill(`it is no good zip: ${(error as Error).message}`)
  }
}

async function unzip(bytes: Buffer): Promise<SkillFile[]> {
  // Names with `..`, backslashes or a slash first are refused, and so is data of another size than was said.
  const zip = await fromBufferPromise(bytes, { strictFileNames: true, validateEntrySizes: true })
  if (zip.entryCount > MAX_ENTRIES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
  const files: SkillFile[] = []
  let total = 0
  for await (const entry of zip.eachEntry()) {
    if (entry.fileName.endsWith('/')) continue
    // The file type of Unix, where the zip was made there; zero elsewhere.
    const type = (entry.externalFileAttributes >>> 16) & FILE_TYPE
    if (type !== 0 && type !== REGULAR) throw new BadSkill(`${entry.fileName} is no plain file`)
    total += entry.uncompressedSize
    if (files.length >= MAX_FILES) throw new BadSkill(`it has more than ${MAX_FILES} files`)
    if (total > MAX_BYTES) throw new BadSkill(`it has more than ${MAX_BYTES} bytes`)
    const content = await zip.openReadStreamPromise(entry)
    files.push({ path: entry.fileName, bytes: Buffer.concat(await content.toArray()) })
  }
  return files
}

function withoutFolder(files: SkillFile[]): SkillFile[] {
  const [folder] = files[0]?.path.split('/') ?? []
  const prefix = `${folder}/`
  if (files.some(({ path }) => path === 'SKILL.md' || !path.startsWith(prefix))) return files
  return files.map(({ path, bytes }) => ({ path: path.slice(prefix.length), bytes }))
}
