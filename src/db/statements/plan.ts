import { Plan as PLAN_COLUMNS } from '../generated/columns.ts'
import { columnOf, type Row } from './statement.ts'

// The limits of models are read where they are checked, as of that moment.
const { modelUsdPerMonth, modelTokensPerMonth, ...COLUMNS } = PLAN_COLUMNS

/** The limits of a workspace; `null` means no limit. */
export type Plan = Row<typeof COLUMNS>

/** A {@link Plan} of the row `p`. */
export const PLAN = `json_build_object(${Object.keys(COLUMNS)
  .map((name) => `'${name}', p.${columnOf(name)}`)
  .join(', ')})`
