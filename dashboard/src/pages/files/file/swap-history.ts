import { useQuery } from '@tanstack/react-query'
import { api, RequestError, unwrap } from '../../../api/client.ts'
import { type Network, useGateways } from '../files.ts'

/** The plugin of gateways that serve swaps. */
const HOT_SWAPS = 2

/** The swaps of a CID, newest first; empty where it was never swapped. */
export function useHistory(network: Network, cid: string) {
  const { gateways } = useGateways()
  const plugins = useQuery({
    queryKey: ['gateway-plugins'],
    queryFn: () => unwrap(api.GET('/v3/gateways/plugins')),
  })
  const having = plugins.data?.data.find(({ plugin_id }) => plugin_id === HOT_SWAPS)?.gateway_id
  const domain = gateways.find(({ id }) => id === having)?.domain
  return useQuery({
    queryKey: ['swaps', network, cid, domain],
    enabled: domain !== undefined,
    queryFn: async () => {
      const params = { path: { network, cid }, query: { domain: domain ?? '' } }
      try {
        return (await unwrap(api.GET('/v3/files/{network}/swap/{cid}', { params }))).data
      } catch (error) {
        if (error instanceof RequestError && error.status === 404) return []
        throw error
      }
    },
  })
}
