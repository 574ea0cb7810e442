/** Examples for the routes of templates. */
import type { Example } from './example.ts'

const AGENT = 'x7f3k2ab'
const REPOSITORY = 'https://git.example/librarian.git'
const COMMIT = '5f1c0e9b7a2d4836c1f0b9e8d7a6c5b4f3e2d1c0'

const shipped = {
  templateId: 't1cseveo',
  name: 'Page keeper',
  slug: 'page',
  description: 'Builds and serves a web page, and changes it as you ask.',
  longDescription: '# A web page with an agent behind it\n\nThe agent serves `workspace/site/` …',
  authorName: 'Berth',
  authorUrl: null,
  authorLogoUrl: null,
  category: 'web',
  tags: ['web', 'page', 'hosting'],
  openclawVersion: '2026.9.6',
  requiredSecrets: [],
  includedSkillCids: [],
  defaultVibe: 'neat and quick',
  defaultEmoji: '🌐',
  version: 1,
  partnerName: 'Berth',
  partnerUrl: null,
  partnerLogoUrl: null,
  snapshotCid: 'bafybeihknjjlpya5ie76jot3mvp2kymyqnab6g676dxaqd2n5bz5hoi4qq',
  featured: true,
  sortOrder: 0,
  status: 'published',
  archived: false,
  price: null,
  priceAsset: '',
  priceNetwork: '',
  payToAddress: null,
  isFree: true,
  createdAt: null,
  updatedAt: null,
  submittedBy: null,
  gitUrl: null,
  gitCommitSha: null,
}
const own = {
  ...shipped,
  templateId: 'tk3m9x2q',
  name: 'Librarian',
  slug: 'librarian',
  description: 'Keeps a catalogue of books.',
  longDescription: '# Librarian\n\nKeeps a catalogue of books.',
  authorName: '',
  partnerName: '',
  category: 'reference',
  tags: ['books'],
  requiredSecrets: [{ name: 'CATALOGUE_KEY', description: 'Opens the catalogue.', required: true }],
  defaultVibe: 'quiet and exact',
  defaultEmoji: '📚',
  snapshotCid: 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
  featured: false,
  sortOrder: 1,
  createdAt: '2026-11-21T11:20:07.512Z',
  updatedAt: '2026-11-21T11:20:07.512Z',
  submittedBy: '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60',
  gitCommitSha: COMMIT,
}

export const templateExamples: Record<string, Example> = {
  listTemplates: { response: { templates: [shipped, own], categories: ['reference', 'web'] } },
  listPublicTemplates: { response: { templates: [shipped], categories: ['web'] } },
  getTemplate: { response: { template: shipped } },
  getTemplateById: { response: { template: own } },
  createTemplate: {
    request: { agentId: AGENT, slug: 'librarian', category: 'reference', tags: ['books'] },
    response: { success: true, template: own },
  },
  updateTemplate: {
    request: { agentId: AGENT, description: 'Keeps a catalogue of books, and lends them.' },
    response: {
      success: true,
      template: { ...own, description: 'Keeps a catalogue of books, and lends them.', version: 2 },
    },
  },
  listTemplateBranches: {
    request: { gitUrl: REPOSITORY },
    response: { branches: ['main', 'next'] },
  },
  listTemplateRefs: {
    request: { gitUrl: REPOSITORY, search: 'm' },
    response: { branches: ['main'], tags: [], defaultBranch: 'main' },
  },
  archiveTemplate: { response: { success: true, message: 'Template Librarian archived' } },
  validateTemplate: {
    request: { agentId: AGENT },
    response: {
      valid: true,
      errors: [],
      manifest: { version: 1, engine: 'openclaw', agent: { name: 'Librarian' } },
      readme: '# Librarian\n',
      files: ['README.md', 'manifest.json', 'workspace/AGENTS.md'],
      commitSha: COMMIT,
    },
  },
}
