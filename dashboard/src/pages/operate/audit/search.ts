/** The filters of the audit log, in the URL. */
export interface AuditSearch {
  of?: 'instance' | undefined
  result?: 'done' | 'refused' | undefined
  action?: string | undefined
  resource?: string | undefined
  /** Days, as `2026-11-25`. */
  from?: string | undefined
  to?: string | undefined
}

const text = (value: unknown) => (value === undefined || value === '' ? undefined : String(value))
const day = (value: unknown) => (/^\d{4}-\d{2}-\d{2}$/.test(String(value)) ? String(value) : undefined)

/** Reads the parameters. Anybody may have written the URL, so unknown values are dropped. */
export const readAuditSearch = (asked: Record<string, unknown>): AuditSearch => ({
  of: asked.of === 'instance' ? 'instance' : undefined,
  result: asked.result === 'done' || asked.result === 'refused' ? asked.result : undefined,
  action: text(asked.action),
  resource: text(asked.resource),
  from: day(asked.from),
  to: day(asked.to),
})
