import { texts } from '../../../texts.ts'
import type { Operation } from './operations.ts'

const { kinds, states } = texts.operate.operations

/** Which operations are listed: stands in the address. */
export interface OperationsSearch {
  state?: Operation['state'] | undefined
  kind?: Operation['kind'] | undefined
}

/** Of an address that anybody may have written. */
export const readOperationsSearch = ({ state, kind }: Record<string, unknown>): OperationsSearch => ({
  state: Object.hasOwn(states, String(state)) ? (state as Operation['state']) : undefined,
  kind: Object.hasOwn(kinds, String(kind)) ? (kind as Operation['kind']) : undefined,
})
