/** The front matter of SKILL.md: YAML between two lines of `---`, from an untrusted author. */
import { parse } from 'yaml'
import { z } from 'zod'
import { visibleText } from '../../http/shapes.ts'
import { SEMVER } from './skill-schema.ts'

/** Maximum bytes of the front matter: larger ones would have too many keys to compare with each other. */
const MAX_BYTES = 16_384
/** A line that begins or ends the front matter. Elsewhere in a line `---` is text. */
const FENCE = /^---[^\S\n]*$/

export interface SkillMd {
  name: string
  description: string
  /** Semantic version, if it names one. */
  version: string | null
}

const semver = z.string().max(64).regex(SEMVER).nullable().catch(null)
/** The engine reads numbers and `true` as text. */
const words = (max: number) =>
  z.preprocess(
    (value) => (typeof value === 'number' || typeof value === 'boolean' ? String(value) : value),
    visibleText(max),
  )
const shape = z.object({
  name: words(100),
  description: words(10_000),
  version: semver.default(null),
  metadata: z
    .object({ version: semver.default(null) })
    .catch({ version: null })
    .default({ version: null }),
})

/** Not a skill that an engine would load; the message is for people. */
export class BadSkill extends Error {
  override name = 'BadSkill'
}

/** Parses the front matter. @throws BadSkill if it is missing, is not YAML, or lacks `name` or `description`. */
export function readSkillMd(bytes: Uint8Array): SkillMd {
  const head = Buffer.from(bytes.subarray(0, MAX_BYTES + 10)).toString('utf8')
  const yaml = frontMatter(head)
  if (yaml === undefined)
    throw new BadSkill(
      `SKILL.md: must begin with front matter between lines of ---, at most ${MAX_BYTES} bytes`,
    )
  const parsed = shape.safeParse(parseYaml(yaml))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new BadSkill(`SKILL.md: ${issue?.path.join('.') || 'front matter'}: ${issue?.message}`)
  }
  const { name, description, version, metadata } = parsed.data
  return { name, description, version: version ?? metadata.version }
}

function frontMatter(head: string): string | undefined {
  const [first = '', ...lines] = head.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/)
  const end = lines.findIndex((line) => FENCE.test(line))
  return FENCE.test(first) && end >= 0 ? lines.slice(0, end).join('\n') : undefined
}

function parseYaml(yaml: string): unknown {
  try {
    // Rejects aliases, which could expand endlessly; endless nesting throws.
    return parse(yaml, { maxAliasCount: 0, logLevel: 'error' })
  } catch (error) {
    const [reason = ''] = (error as Error).message.split('\n')
    throw new BadSkill(`SKILL.md: its front matter is not YAML: ${reason.slice(0, 200)}`)
  }
}
