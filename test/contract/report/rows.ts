/** The contract, row by row, with the tests that prove it. */
import { authentication } from './rows/authentication.ts'
import { endpoints } from './rows/endpoints.ts'
import { limits } from './rows/limits.ts'
import { messages } from './rows/messages.ts'
import { resources } from './rows/resources.ts'
import { statuses } from './rows/statuses.ts'

/**
 * A statement in our own words, and its proofs: `file > suite > test`, with the file's path below `test/contract` and
 * without `.test.ts`.
 */
export type Row = [says: string, ...proofs: string[]]

export interface Section {
  /** The section's number and name in the contract. */
  title: string
  rows: Row[]
}

export const sections: Section[] = [
  ...resources,
  ...endpoints,
  ...authentication,
  ...statuses,
  ...messages,
  ...limits,
]
