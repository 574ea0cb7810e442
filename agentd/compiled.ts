/** V8's code of an engine, which compile-engine.ts leaves in the engine's folder for all agents. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export const compiledFolder = (engineDir: string): string => join(engineDir, 'compile-cache')

/**
 * True if an engine is compiled for this Node and a user: Node names its folders after its version and the user's id,
 * and looks only into its own.
 */
export function isCompiled(engineDir: string, uid = process.getuid?.()): boolean {
  try {
    const names = readdirSync(compiledFolder(engineDir))
    return names.some((name) => name.startsWith(`${process.version}-`) && name.endsWith(`-${uid}`))
  } catch {
    return false
  }
}
