import { api, unwrap } from '../../../api/client.ts'

export const readGateway = (id: string) => unwrap(api.GET('/v3/gateways/{id}', { params: { path: { id } } }))
export type GatewayRecord = Awaited<ReturnType<typeof readGateway>>['data']
