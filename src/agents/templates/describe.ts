/** The description of a template, from its manifest and its README. */
import { checkManifest, type Manifest } from '../../../agentd/manifest-check.ts'
import type { TemplateDetails } from './template.ts'

/** Longer READMEs are cut, because lists contain them. */
const README_CHARACTERS = 10_000

/** The files of a template that describe it; null if one is missing. */
export interface TemplateTexts {
  manifest: string | null
  readme: string | null
  /** True if the template has a folder `workspace`. */
  hasWorkspace: boolean
}

export interface Described {
  manifest: Manifest
  /** Undefined if the manifest names none. */
  slug: string | undefined
  name: string
  details: Omit<TemplateDetails, 'openclawVersion' | 'version' | 'commitSha' | 'git'>
}

/** @returns the template's description, or its faults, one line each. */
export function describeTemplate(texts: TemplateTexts): Described | { errors: string[] } {
  const errors = [
    ...(texts.readme === null ? ['README.md is missing'] : []),
    ...(texts.hasWorkspace ? [] : ['workspace/ is missing']),
  ]
  if (texts.manifest === null) return { errors: ['manifest.json is missing', ...errors] }
  const checked = checkManifest(texts.manifest)
  if ('errors' in checked) return { errors: [...checked.errors, ...errors] }
  if (errors.length > 0) return { errors }
  const { manifest } = checked
  const { agent, template = {}, secrets = [], skills = [] } = manifest
  return {
    manifest,
    slug: template.slug,
    name: agent.name.trim(),
    details: {
      description: agent.description?.trim() ?? '',
      longDescription: texts.readme ? cut(texts.readme.trim(), README_CHARACTERS) : null,
      authorName: template.authorName ?? template.partnerName ?? '',
      authorUrl: template.authorUrl ?? template.partnerUrl ?? null,
      authorLogoUrl: template.authorLogoUrl ?? template.partnerLogoUrl ?? null,
      category: template.category ?? 'other',
      tags: template.tags ?? [],
      requiredSecrets: secrets.map(({ name, description, required, guideUrl, guideSteps }) => ({
        name,
        description: description ?? '',
        ...(guideUrl && { guideUrl }),
        ...(guideSteps && { guideSteps }),
        required: required ?? true,
      })),
      includedSkillCids: skills.flatMap(({ cid }) => cid ?? []),
      defaultVibe: agent.vibe ?? null,
      defaultEmoji: agent.emoji ?? null,
    },
  }
}

const cut = (text: string, max: number) => (text.length > max ? `${text.slice(0, max - 1)}…` : text)
