/**
 * Parses a query string: `a=1&b[c]=2` is `{a: '1', b: {c: '2'}}`, and a name that comes twice is a list.
 * One level of brackets only (OpenAPI's `deepObject`), and what stands in them is always a key: `b[0]=x`
 * is no list, since metadata may have numbers for keys.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const query = emptyRecord()
  for (const [name, value] of new URLSearchParams(text)) {
    const [, outer, key] = /^([^[]+)\[(.*)\]$/s.exec(name) ?? []
    if (outer === undefined || key === undefined) append(query, name, value)
    else {
      const inner = isRecord(query[outer]) ? query[outer] : emptyRecord()
      append(inner, key, value)
      query[outer] = inner
    }
  }
  return query
}

type Values = Record<string, unknown>

/** Without a prototype: names come from the client. */
const emptyRecord = (): Values => Object.create(null)

const isRecord = (value: unknown): value is Values => typeof value === 'object' && !Array.isArray(value)

function append(values: Values, name: string, value: string): void {
  const known = values[name]
  values[name] = known === undefined ? value : [known, value].flat()
}
