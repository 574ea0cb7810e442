/** Values that the acts of `npm run demo:files` share. */
import type { PinataSDK } from 'pinata'
import type { Comparison } from './gateway.ts'
import type { Screen } from './screen.ts'

export interface Scene {
  screen: Screen
  signal: AbortSignal
  sdk: PinataSDK
  /** Host name of the gateway. */
  gateway: string
  /** How many bytes this process has sent by `fetch`. */
  sent(): number
  comparison: Comparison
  /** Everything that Berth keeps, oldest first. */
  kept: Kept[]
}

/** A file or folder that Berth keeps, and what must be in it. */
export interface Kept {
  id: string
  cid: string
  network: 'public' | 'private'
  name: string
  /** By path; the only path of a file is empty. */
  parts: { path: string; content: Blob }[]
}

export const sizeOf = ({ parts }: Pick<Kept, 'parts'>): number =>
  parts.reduce((sum, { content }) => sum + content.size, 0)

/** `bafkreigh2a…bzdi` */
export const short = (cid: string): string => `${cid.slice(0, 11)}…${cid.slice(-4)}`

/** @throws Error unless two lists, of ids or names, are the same. */
export function expectSame(what: string, actual: readonly string[], expected: readonly string[]): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) {
    throw new Error(`${what}: [${actual.join(', ')}], not [${expected.join(', ')}]`)
  }
}
