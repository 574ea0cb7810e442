/** The tools that an agent's manifest declares: scripts of the agent, which run like commands of the console. */
import { faultsOf, type ManifestTool } from '../../../agentd/manifest-check.ts'
import type { Schema } from '../../../agentd/manifest-schema.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import type { Agent } from '../agent.ts'
import { type Execution, runCommand } from '../console/exec.ts'

/** More would fill the context of a model. */
const OUTPUT_BYTES = 65_536
const INPUT_BYTES = 65_536

/** The tools of the manifest that was applied last. */
export async function declaredTools(
  prisma: PrismaClient,
  { id }: Pick<Agent, 'id'>,
): Promise<ManifestTool[]> {
  const row = await prisma.agent.findUnique({ where: { id }, select: { manifest: true } })
  // Comments are not for clients.
  const isComment = (key: string) => key.startsWith('_')
  const manifest = JSON.parse(row?.manifest ?? '{}', (key, value) => (isComment(key) ? undefined : value))
  return manifest.mcp?.tools ?? []
}

/** A tool as clients see it. */
export const shownTool = (tool: ManifestTool) => ({
  name: tool.name,
  description: tool.description,
  inputSchema: { ...inputOf(tool), type: 'object' as const },
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
})

const inputOf = ({ input }: ManifestTool) =>
  ({ type: 'object', ...input, additionalProperties: false }) satisfies Schema

/** The first fault of a tool's arguments; undefined if it takes them. */
export function faultOf(tool: ManifestTool, args: object): string | undefined {
  if (Buffer.byteLength(JSON.stringify(args)) > INPUT_BYTES)
    return `the arguments must have at most ${INPUT_BYTES} bytes`
  return faultsOf(inputOf(tool), args)[0]
}

/**
 * Runs a tool's script with the arguments as JSON on its stdin, never in its command line.
 * @returns its output, and whether it failed.
 * @throws ApiError as {@link runCommand}.
 */
export async function runTool(
  execution: Omit<Execution, 'command' | 'input'>,
  { command }: ManifestTool,
  args: object,
): Promise<{ text: string; isError: boolean }> {
  const outputBytes = Math.min(execution.outputBytes, OUTPUT_BYTES)
  const ended = await runCommand({
    ...execution,
    command: { command },
    input: JSON.stringify(args),
    outputBytes,
  })
  const { stdout, stderr, exitCode, truncated, timedOut } = ended
  const isError = exitCode !== 0
  const notes = [
    truncated && `The output was cut after ${outputBytes} bytes.`,
    timedOut && `It was ended after ${execution.timeoutMs / 1000} seconds.`,
    isError && !timedOut && `It failed with exit code ${exitCode}.`,
  ]
  const said = [isError ? stderr || stdout : stdout, ...notes].filter(Boolean)
  return { text: said.join('\n').trimEnd(), isError }
}
