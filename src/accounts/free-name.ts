/**
 * Names of users and workspaces are unique in the instance. A taken name gets a number: an error would reveal who is
 * here.
 */
import { randomInt } from 'node:crypto'
import { isUniqueViolation } from '../db/database-errors.ts'
import type { Prisma } from '../db/prisma.ts'

/** The highest of the numbers that are tried in order. */
const MAX_NUMBER = 9
/** Bounds of the random number that a name gets if all of these are taken. */
const LARGE_NUMBERS = [1000, 1_000_000] as const
const MAX_NAME = 255
const TRIES = 5

/**
 * Returns a name that no other user or workspace has.
 * @param ownId id of the row that gets the name, if it already has one.
 */
export async function freeName(
  tx: Prisma.TransactionClient,
  of: 'user' | 'workspace',
  name: string,
  ownId?: string,
): Promise<string> {
  const numbered = (number: number) => `${name.slice(0, MAX_NAME - ` ${number}`.length)} ${number}`
  const candidates = [name, ...Array.from({ length: MAX_NUMBER - 1 }, (_, at) => numbered(at + 2))]
  const where = { name: { in: candidates }, ...(ownId !== undefined && { id: { not: ownId } }) }
  const select = { name: true }
  const found = of === 'user' ? tx.user.findMany({ where, select }) : tx.workspace.findMany({ where, select })
  const taken = new Set((await found).map((row) => row.name))
  return candidates.find((candidate) => !taken.has(candidate)) ?? numbered(randomInt(...LARGE_NUMBERS))
}

/** Runs a transaction that writes a {@link freeName}, and retries if another transaction takes the name first. */
export async function withFreeName<T>(of: 'user' | 'workspace', run: () => Promise<T>): Promise<T> {
  const index = of === 'user' ? 'app_user_name_key' : 'workspace_name_key'
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      if (attempt === TRIES || !isUniqueViolation(error, index)) throw error
    }
  }
}
