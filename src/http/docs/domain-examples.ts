/** Examples of the routes by which an agent's pages are reached, see `examples.ts`. */
import type { Example } from './examples.ts'

const mappings = [
  { port: 3000, pathPrefix: '/', protected: false },
  { port: 8080, pathPrefix: '/admin', protected: true },
]

export const domainExamples: Record<string, Example> = {
  listPortForwarding: { response: { mappings } },
  setPortForwarding: { request: { mappings }, response: { success: true, mappings } },
}
