/** Helpers for chart tests that read the objects rendered by the chart. */
import assert from 'node:assert/strict'
import { type Made, render, type Values } from './helm.ts'

/** The required values of the chart. */
export const NEEDED = {
  image: { repository: 'registry.example.org/berth' },
  publicUrl: 'https://berth.example.org',
  agents: { engineImage: 'registry.example.org/berth/openclaw:{version}' },
}
export const ROLES = ['web', 'worker', 'agent-proxy']

export const find = (all: Made[], kind: string, name: string): Made => {
  const found = all.find((one) => one.kind === kind && one.metadata.name === name)
  assert.ok(found, `${kind} ${name} is made`)
  return found
}
export const namesOf = (all: Made[], kind: string) =>
  all.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name)
export const podOf = (all: Made[], role: string) =>
  find(all, 'Deployment', `berth-${role}`).spec.template.spec
export const containerOf = (all: Made[], role: string) => podOf(all, role).containers[0]
export const environmentOf = (all: Made[], role: string): Record<string, string> =>
  Object.fromEntries(containerOf(all, role).env.map((one: any) => [one.name, one.value]))
export const policyOf = (all: Made[], role: string) => find(all, 'NetworkPolicy', `berth-${role}`).spec
/** Each object merged into the required values. */
export const withNeeded = (values: Values = {}): Values => {
  const merged: Values = { ...NEEDED }
  for (const [name, value] of Object.entries(values))
    merged[name] =
      typeof value === 'object' && !Array.isArray(value)
        ? { ...(merged[name] as object | undefined), ...value }
        : value
  return merged
}
export const made = (values?: Values) => render(withNeeded(values))
export const refused = (values: Values, words: RegExp) =>
  assert.rejects(render(values), (error: Error) => words.test(error.message))
