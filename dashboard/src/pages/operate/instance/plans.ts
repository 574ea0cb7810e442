import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'

export function usePlans() {
  const { data, error } = useQuery({ queryKey: ['plans'], queryFn: () => unwrap(api.GET('/v0/admin/plans')) })
  return { plans: data?.data.plans, error }
}
