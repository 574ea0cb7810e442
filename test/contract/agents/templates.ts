/** The workspace that template tests share, with an agent that is only a row, and snapshots of it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Client, Reply } from '../../support/client.ts'
import type { Context, Workspace } from '../context.ts'
import { insertAgent, insertSnapshot, type RowAgent } from './rows.ts'

export const TEMPLATES = '/v0/templates'
export const NO_TEMPLATE = 'There is no such template'
/** The slugs of the templates that ship with Berth. */
export const SHIPPED = ['assistant', 'page', 'researcher']
/** An id that no template has. */
export const MISSING_ID = 'tzzzzzzz'

export const manifest = (more: object = {}): string =>
  JSON.stringify({ version: 1, agent: { name: 'Librarian' }, ...more })

/** Files of a template, unique unless `mark` is given. */
export const files = (text = manifest(), mark: string = randomUUID()): Record<string, string> => ({
  'manifest.json': text,
  'README.md': `# Librarian\n\n${mark}\n`,
  'workspace/AGENTS.md': '# Books\n',
})

export interface Maker {
  workspace: Workspace
  agent: RowAgent
  /** Adds a snapshot with these files to the agent's history. */
  snapshot(tree?: Record<string, string>): Promise<{ cid: string; commitSha: string }>
  /** The body of a request for a template of the agent, under its own slug. */
  body(more?: object): Record<string, unknown>
  /** Creates a template from the agent's newest snapshot; resolves to its record. */
  make(more?: object, client?: Client): Promise<Reply['body']>
}

/** A new workspace with an agent from which templates can be created. */
export async function templateMaker(context: Context): Promise<Maker> {
  const workspace = await context.workspace()
  const agent = await insertAgent(context, workspace)
  const body = (more: object = {}) => ({
    agentId: agent.agentId,
    slug: `s-${randomUUID()}`,
    description: 'Lends books.',
    ...more,
  })
  return {
    workspace,
    agent,
    body,
    snapshot: (tree = files()) => insertSnapshot(context, workspace, agent, tree),
    async make(more = {}, client = workspace.api) {
      const reply = await client.post(TEMPLATES, body(more))
      assert.equal(reply.status, 201, JSON.stringify(reply.body))
      assert.equal(reply.body.success, true)
      return reply.body.template
    },
  }
}

export const slugs = ({ body }: Reply): string[] =>
  body.templates.map((template: { slug: string }) => template.slug)
