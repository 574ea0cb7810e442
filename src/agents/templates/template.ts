/** A template for agents, whatever its source, and its format for clients. */
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Network } from '../../storage/port.ts'

/** The description of a template, apart from its name and slug. Stored as JSON with the templates of workspaces. */
const templateDetails = z.object({
  description: z.string(),
  longDescription: z.string().nullable(),
  authorName: z.string(),
  authorUrl: z.string().nullable(),
  authorLogoUrl: z.string().nullable(),
  category: z.string(),
  tags: z.array(z.string()),
  /** Version of the engine that it was created on. */
  openclawVersion: z.string(),
  requiredSecrets: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      guideUrl: z.string().optional(),
      guideSteps: z.array(z.string()).optional(),
      required: z.boolean(),
    }),
  ),
  includedSkillCids: z.array(z.string()),
  defaultVibe: z.string().nullable(),
  defaultEmoji: z.string().nullable(),
  /** Grows with each new snapshot or commit that replaces its files. */
  version: z.number(),
  /**
   * The commit that it was created from, in an agent's history or a repository; null for a template that ships with
   * Berth.
   */
  commitSha: z.string().nullable(),
  /** The repository that it was created from; null for templates from snapshots, and for those that ship with Berth. */
  git: z.object({ url: z.string(), ref: z.string().nullable(), path: z.string() }).nullable(),
})
export type TemplateDetails = z.output<typeof templateDetails>

export interface Template {
  id: string
  slug: string
  name: string
  details: TemplateDetails
  snapshotCid: string
  /** The template's folder on IPFS; null if its files ship with Berth. */
  stored: { network: Network; executables: string[] } | null
  /** The user who created it. */
  submittedBy: string | null
  createdAt: string | null
  updatedAt: string | null
}

export const TEMPLATE_ID = /^t[a-z0-9]{7}$/
export const TEMPLATE_SLUG = /^[a-z0-9]+(-[a-z0-9]+)*$/
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A new id: 8 characters. */
export function newTemplateId(): string {
  return `t${Array.from({ length: 7 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')}`
}

export const templateRecord = z.object({
  templateId: z.string(),
  name: z.string(),
  slug: z.string(),
  ...templateDetails.omit({ commitSha: true, git: true }).shape,
  partnerName: z.string(),
  partnerUrl: z.string().nullable(),
  partnerLogoUrl: z.string().nullable(),
  snapshotCid: z.string(),
  featured: z.boolean().describe('True for those that ship with Berth.'),
  sortOrder: z.number(),
  status: z.literal('published'),
  archived: z.literal(false),
  price: z.null(),
  priceAsset: z.string(),
  priceNetwork: z.string(),
  payToAddress: z.null(),
  isFree: z.literal(true),
  createdAt: z.string().nullable(),
  updatedAt: z.string().nullable(),
  submittedBy: z.string().nullable(),
  gitUrl: z.string().nullable().describe('The repository that it was created from.'),
  gitCommitSha: z.string().nullable(),
})

/** The template as clients see it. `partner…` are older clients' names for the author; nothing here has a price. */
export function toTemplateRecord(template: Template): z.output<typeof templateRecord> {
  const { id, name, slug, details, snapshotCid, stored, createdAt, updatedAt, submittedBy } = template
  const { commitSha, git, ...shown } = details
  const isShipped = stored === null
  return {
    templateId: id,
    name,
    slug,
    ...shown,
    partnerName: details.authorName,
    partnerUrl: details.authorUrl,
    partnerLogoUrl: details.authorLogoUrl,
    snapshotCid,
    featured: isShipped,
    sortOrder: isShipped ? 0 : 1,
    status: 'published',
    archived: false,
    price: null,
    priceAsset: '',
    priceNetwork: '',
    payToAddress: null,
    isFree: true,
    createdAt,
    updatedAt,
    submittedBy,
    gitUrl: git?.url ?? null,
    gitCommitSha: commitSha,
  }
}
