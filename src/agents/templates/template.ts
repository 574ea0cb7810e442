/** A template for agents, whatever its source, and its format for clients. */

import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { commitSha, contentCid, engineVersion, like, timestamp, withExample } from '../../http/fields.ts'
import type { Network } from '../../storage/port.ts'

/** The description of a template, apart from its name and slug. Stored as JSON with the templates of workspaces. */
const templateDetails = z.object({
  description: like('Keeps a catalogue of books.'),
  longDescription: z.string().nullable(),
  authorName: like(''),
  authorUrl: z.string().nullable(),
  authorLogoUrl: z.string().nullable(),
  category: like('reference'),
  tags: withExample(z.array(z.string()), ['books']),
  /** Version of the engine that it was created on. */
  openclawVersion: engineVersion,
  requiredSecrets: z.array(
    z.object({
      name: like('CATALOGUE_KEY'),
      description: like('Opens the catalogue.'),
      guideUrl: z.string().optional(),
      guideSteps: z.array(z.string()).optional(),
      required: z.boolean(),
    }),
  ),
  includedSkillCids: z.array(z.string()),
  defaultVibe: like('quiet and exact').nullable(),
  defaultEmoji: like('📚').nullable(),
  /** Grows with each new snapshot or commit that replaces its files. */
  version: like(1),
  /**
   * The commit that it was created from, in an agent's history or a repository; null for a template that ships with
   * Berth.
   */
  commitSha: commitSha.nullable(),
  /** The repository that it was created from; null for templates from snapshots, and for those that ship with Berth. */
  git: z
    .object({
      url: like('https://git.example/librarian.git'),
      ref: z.string().nullable(),
      path: like('agents/librarian'),
    })
    .nullable(),
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
  templateId: like('tk3m9x2q'),
  name: like('Librarian'),
  slug: like('librarian'),
  ...templateDetails.omit({ commitSha: true, git: true }).shape,
  partnerName: like(''),
  partnerUrl: z.string().nullable(),
  partnerLogoUrl: z.string().nullable(),
  snapshotCid: contentCid,
  featured: z.boolean().describe('True for those that ship with Berth.'),
  sortOrder: like(1),
  status: z.literal('published'),
  archived: z.literal(false),
  price: z.null(),
  priceAsset: like(''),
  priceNetwork: like(''),
  payToAddress: z.null(),
  isFree: z.literal(true),
  createdAt: timestamp.nullable(),
  updatedAt: timestamp.nullable(),
  submittedBy: z.string().nullable(),
  gitUrl: z.string().nullable().describe('The repository that it was created from.'),
  gitCommitSha: commitSha.nullable(),
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
