import commands from '../../../bin/operator-commands.json' with { type: 'json' }

/** Commands for operators: `bin/berth.mjs` runs them with the server's code. This package only knows their names. */
export const OPERATOR: Record<string, string> = commands
