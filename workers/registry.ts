/**
 * Finds the handler of each kind of operation: a file of `workers/handlers` whose name begins with `agent` exports the
 * handler of `agent.restart`. This needs no list.
 */
import { readdir } from 'node:fs/promises'
import { catalog, OPERATION_KINDS, type QueueName } from '../src/operations/catalog.ts'
import type { Handlers } from '../src/operations/handler.ts'
import { AGENT_QUEUES, type Definition, type WorkerServices } from './services.ts'

const HANDLERS = new URL('handlers/', import.meta.url)

/**
 * The handlers of the kinds that this worker can run.
 * @throws Error if a kind has no handler or two, or if a file has none: such a worker must not start.
 */
export async function loadHandlers(services: WorkerServices, folder = HANDLERS): Promise<Handlers> {
  const definitions = await readDefinitions(folder)
  const handlers: Record<string, unknown> = {}
  for (const { kind, create } of definitions) {
    const isOfAgents = (AGENT_QUEUES as readonly QueueName[]).includes(catalog[kind].queue)
    const given = isOfAgents ? services.agents : services
    // A worker without agent queues never receives these kinds.
    if (given) handlers[kind] = create(given as Parameters<typeof create>[0])
  }
  return handlers
}

async function readDefinitions(folder: URL): Promise<Definition[]> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'))
  const definitions = (await Promise.all(files.map((file) => importHandlers(folder, file)))).flat()
  const kinds = definitions.map(({ kind }) => kind)
  const missing = OPERATION_KINDS.filter((kind) => !kinds.includes(kind))
  const repeated = OPERATION_KINDS.filter((kind) => kinds.indexOf(kind) !== kinds.lastIndexOf(kind))
  if (missing.length > 0) throw new Error(`no handler in workers/handlers: ${missing.join(', ')}`)
  if (repeated.length > 0) throw new Error(`two handlers in workers/handlers: ${repeated.join(', ')}`)
  return definitions
}

/** The handlers that a file exports; ignores its other exports. */
async function importHandlers(folder: URL, file: string): Promise<Definition[]> {
  const exported: unknown[] = Object.values(await import(new URL(file, folder).href))
  const found = exported.filter(isDefinition)
  const resource = /^[^.-]*/.exec(file)?.[0]
  const ofNoKind = found.filter(({ kind }) => !Object.hasOwn(catalog, kind))
  if (found.length === 0 || ofNoKind.length > 0) throw new Error(`unknown kind of operation: ${file}`)
  const misplaced = found.find(({ kind }) => kind.split('.')[0] !== resource)
  if (misplaced) throw new Error(`${file} must not contain the handler of ${misplaced.kind}`)
  return found
}

const isDefinition = (value: unknown): value is Definition =>
  typeof value === 'object' && value !== null && 'kind' in value && 'create' in value
