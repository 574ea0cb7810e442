/** Examples for the routes of skills and their hub; see `examples.ts`. */
import type { Example } from './example.ts'

const AGENT = 'x7f3k2ab'
const SKILL = '0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19'
const CID = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
const NEWER = 'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'
const HUB_CID = 'bafybeihuhobkl6df3ihkap53v4hsqsns5at2oadvkx444zdhphayuzac44'
const SINCE = '2026-11-21T11:05:12.208Z'

const identity = {
  skillId: SKILL,
  skillCid: CID,
  name: 'invoices',
  description: 'Write invoices from the price list.',
  version: '1.2.0',
  slug: null,
}
const skill = {
  ...identity,
  network: 'private',
  createdAt: SINCE,
  updatedAt: SINCE,
  userId: '0193a1bf-02c8-7d15-93fe-6b1c2d4e5f60',
  envVars: [{ name: 'INVOICE_API_KEY', description: 'Of the accounting service.' }],
  fileId: '0193a1c4-6f11-7d20-9b3a-51c7e0d48a26',
}
const version = {
  skillId: SKILL,
  skillCid: NEWER,
  version: '1.3.0',
  network: 'private',
  fileId: null,
  createdAt: '2026-11-21T12:40:00.917Z',
}
const attached = { agentId: AGENT, ...identity, attachedAt: SINCE }
const journal = {
  hubSkillId: 'QGJlcnRoL2pvdXJuYWw',
  skillCid: HUB_CID,
  name: 'journal',
  slug: '@berth/journal',
  description: 'Keep a short journal of what was done and decided, so that the next session knows it.',
  longDescription: null,
  authorName: 'Berth',
  authorUrl: null,
  authorLogoUrl: null,
  category: 'productivity',
  tags: ['memory', 'notes'],
  envVars: [],
  readmeUrl: null,
  featured: true,
  installCount: 3,
  version: '1.0.0',
  createdAt: SINCE,
  updatedAt: SINCE,
}
const operation = { id: '0193a1c5-7d2e-7b1a-9c55-3f0e6a2b8d41', state: 'running' }
const retrieving = {
  success: true,
  message: 'The content is being retrieved: repeat the request when the operation has ended',
  operation,
}
const there = { success: true, message: 'The agent has it' }
const later = { success: true, message: 'It is written to the agent; see the operation', operation }

export const skillExamples: Record<string, Example> = {
  listSkills: { response: { skills: [skill], currentUserId: skill.userId } },
  addSkill: {
    request: { skillCid: CID, name: 'invoices', envVars: skill.envVars },
    response: { success: true, skill },
    others: { 202: retrieving },
  },
  listSkillVersions: { response: { skillId: SKILL, versions: [version] } },
  addSkillVersion: {
    request: { skillCid: NEWER, version: '1.3.0' },
    response: { success: true, version },
    others: { 202: retrieving },
  },
  deleteSkill: { response: { success: true, message: 'Skill invoices deleted', wasInLibrary: true } },
  listAgentSkills: { response: { skills: [attached] } },
  attachSkills: {
    request: { skillCids: [CID, '@berth/journal'] },
    response: { ...there, attached: 2 },
    others: { 202: { ...later, attached: 2 } },
  },
  detachSkill: {
    response: { success: true, message: 'The agent no longer has it' },
    others: { 202: { ...later, message: 'It is removed from the agent; see the operation' } },
  },
  listSkillUpdates: {
    response: {
      agentId: AGENT,
      updates: [
        {
          skillId: SKILL,
          name: 'invoices',
          skillCid: CID,
          version: '1.2.0',
          latestSkillCid: NEWER,
          latestVersion: '1.3.0',
          updateAvailable: true,
          folder: 'modified',
        },
      ],
    },
  },
  updateSkill: {
    request: { expectedSkillCid: CID, resolution: 'replace' },
    response: { ...there, skill: { ...attached, skillCid: NEWER, version: '1.3.0' } },
    others: { 202: { ...later, skill: { ...attached, skillCid: NEWER, version: '1.3.0' } } },
  },
  listHub: { response: { skills: [journal], nextCursor: null } },
  getHubSkill: { response: { skill: journal } },
  installHubSkill: {
    response: {
      success: true,
      skill: {
        ...skill,
        skillCid: HUB_CID,
        name: '@berth/journal',
        description: journal.description,
        version: '1.0.0',
        slug: '@berth/journal',
        network: 'public',
        envVars: [],
        fileId: null,
      },
    },
  },
}
