import { useQuery } from '@tanstack/react-query'
import { api, RequestError } from './client.ts'
import type { paths } from './schema.ts'

type Health = paths['/readyz']['get']['responses'][200]['content']['application/json']
/** No event tells of the health of parts. */
const HEALTH_MS = 30_000

/** `/readyz` answers 503 where a part is down that Berth needs, with the same body. */
async function readHealth(): Promise<Health> {
  const { data, error, response } = await api.GET('/readyz')
  const report = data ?? (error as unknown as Health | undefined)
  if (!report?.parts) throw new RequestError(response.status, response.statusText)
  return report
}

export const useHealth = () =>
  useQuery({ queryKey: ['health'], queryFn: readHealth, refetchInterval: HEALTH_MS })
