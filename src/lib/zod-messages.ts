/**
 * Replaces Zod's messages for invalid values with messages that state the requirement; a schema's own messages take
 * precedence. Imported for this side effect by the API's shapes and the settings.
 */
import { z } from 'zod'

const TYPES: Record<string, string> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}

z.config({
  customError(issue) {
    switch (issue.code) {
      case 'invalid_type':
        if (issue.input === undefined) return 'is required'
        return `must be ${TYPES[issue.expected] ?? issue.expected}`
      case 'invalid_value':
        return issue.input === undefined ? 'is required' : `must be ${eitherOf(issue.values)}`
      case 'too_small':
        return boundOf('least', issue.minimum, issue)
      case 'too_big':
        return boundOf('most', issue.maximum, issue)
      case 'unrecognized_keys':
        return `has no ${eitherOf(issue.keys)}`
      default:
        return undefined
    }
  },
})

const eitherOf = (values: readonly unknown[]): string =>
  new Intl.ListFormat('en', { type: 'disjunction' }).format(values.map(String))

const UNITS: Record<string, string> = {
  string: 'characters',
  array: 'entries',
  set: 'entries',
  map: 'entries',
}

function boundOf(
  which: 'least' | 'most',
  bound: number | bigint,
  { origin, inclusive }: { origin: string; inclusive?: boolean | undefined },
): string {
  if (origin === 'string' && which === 'least' && bound === 1) return 'must not be empty'
  const unit = UNITS[origin]
  if (unit) return `must have at ${which} ${bound} ${unit}`
  if (inclusive === false) return `must be ${which === 'least' ? 'more' : 'less'} than ${bound}`
  return `must be at ${which} ${bound}`
}
