import { useQuery } from '@tanstack/react-query'
import type { paths } from './client.ts'
import { api, RequestError } from './client.ts'

type Health = paths['/readyz']['get']['responses'][200]['content']['application/json']
/** No events report the health of the parts, so the page polls. */
const HEALTH_MS = 30_000

/** `/readyz` returns 503 with the same body if a part that Berth needs is down. */
async function readHealth(): Promise<Health> {
  const { data, error, response } = await api.GET('/readyz')
  const report = data ?? (error as unknown as Health | undefined)
  if (!report?.parts) throw new RequestError(response.status, response.statusText)
  return report
}

export const useHealth = () =>
  useQuery({ queryKey: ['health'], queryFn: readHealth, refetchInterval: HEALTH_MS })
