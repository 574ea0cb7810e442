import type { Core } from '../core.ts'
import { Audit } from '../http/audit.ts'
import type { Route } from '../http/route.ts'
import { AuditLog } from './audit-log.ts'
import { auditRoutes } from './audit-routes.ts'

const AUDIT_MS = 2000

export function openAudit(core: Core): { audit: Audit; routes: Route[] } {
  const { pool, log, parts } = core
  const auditLog = new AuditLog(pool, log)
  const flush = () => auditLog.flush()
  // It stops after the server, so that the last requests are included.
  parts.addLoop('audit', AUDIT_MS, flush, flush)
  return { audit: new Audit(auditLog), routes: auditRoutes(core) }
}
