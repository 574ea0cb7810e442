import { texts } from '../../../texts.ts'
import type { Operation } from './operations.ts'

const { kinds, states } = texts.operate.operations

/** The filters of the operations list, in the URL. */
export interface OperationsSearch {
  state?: Operation['state'] | undefined
  kind?: Operation['kind'] | undefined
}

/** Reads the parameters. Anybody may have written the URL, so unknown values are dropped. */
export const readOperationsSearch = ({ state, kind }: Record<string, unknown>): OperationsSearch => ({
  state: Object.hasOwn(states, String(state)) ? (state as Operation['state']) : undefined,
  kind: Object.hasOwn(kinds, String(kind)) ? (kind as Operation['kind']) : undefined,
})
