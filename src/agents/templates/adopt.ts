/** What makes the files of a template those of a new agent. */
import { parseManifest } from '../../../agentd/manifest-check.ts'
import type { Agent } from '../agent.ts'

type Person = Pick<Agent, 'name' | 'description' | 'vibe' | 'emoji'>

/** The template's manifest with the agent's own name and description, and without what it says of the template. */
export function adoptManifest(text: string, { name, description, vibe, emoji }: Person): string {
  const { template: _, ...manifest } = parseManifest(text)
  const given = Object.entries({ name, description, vibe, emoji }).filter(([, value]) => value !== null)
  return `${JSON.stringify({ ...manifest, agent: Object.fromEntries(given) }, null, 2)}\n`
}

/**
 * `workspace/IDENTITY.md` of the agent that the template was made of, with the new agent's name, emoji and vibe in the
 * lines that Berth once wrote; whatever else is in it stays.
 */
export function adoptIdentity(text: string, { name, vibe, emoji }: Person): string {
  const values: Record<string, string | null> = { Name: name, Emoji: emoji, Vibe: vibe }
  return text.replace(/^- \*\*(Name|Emoji|Vibe):\*\*.*$/gm, (_, field: string) => {
    const value = (values[field] ?? '').replace(/\s+/g, ' ').trim()
    return `- **${field}:** ${value}`
  })
}
