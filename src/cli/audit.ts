/** `npx berth audit`. */
import { findWorkspace } from '../accounts/workspaces.ts'
import { type AuditFilter, eachPage, listAudit } from '../audit/audit.ts'
import { badRequest, notFound } from '../errors.ts'
import { isUuid } from '../lib/read.ts'
import { withDatabase } from './database.ts'
import { printRows } from './print.ts'

interface Options {
  workspace?: string
  /** A user's name. */
  user?: string
  key?: string
  agent?: string
  action?: string
  resource?: string
  result?: NonNullable<AuditFilter['result']>
  from?: Date
  to?: Date
  limit: number
  json?: boolean
}

/** Prints entries, newest first: a table of the requested number, or all of them as JSON lines. */
export function printAudit(options: Options): Promise<void> {
  return withDatabase(async ({ pool, prisma }) => {
    const { workspace, user, key, agent, action, resource, result, from, to, limit, json } = options
    if (key !== undefined && !isUuid(key)) throw badRequest('--key: must be the id of a key')
    const of = workspace === undefined ? null : (await findWorkspace(prisma, workspace)).id
    const found = user === undefined ? undefined : await prisma.user.findUnique({ where: { name: user } })
    if (found === null) throw notFound(`no user is named ${user}`)
    const filter = { userId: found?.id, keyId: key, agentId: agent, action, resource, result, from, to }
    if (json) {
      for await (const rows of eachPage(pool, of, filter))
        for (const row of rows) console.log(JSON.stringify(row))
      return
    }
    const rows = await listAudit(pool, of, filter, limit)
    printRows(rows.map(toLine), false)
  })
}

type Row = Awaited<ReturnType<typeof listAudit>>[number]

const toLine = ({ createdAt, via, userName, userId, agentId, action, resource, ...row }: Row) => ({
  time: createdAt,
  via,
  who: agentId ?? userName ?? userId,
  from: row.address,
  action,
  resource,
  result: row.errorCode ?? 'done',
})
