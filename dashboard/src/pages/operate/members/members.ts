import type { paths } from '../../../api/client.ts'
import { texts } from '../../../texts.ts'

type Page =
  paths['/v0/workspaces/{workspaceId}/members']['get']['responses'][200]['content']['application/json']
export type Member = Page['data']['members'][number]
export type Role = Member['role']
export const ROLES = Object.keys(texts.operate.members.roles) as Role[]
