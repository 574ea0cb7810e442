import { useQuery } from '@tanstack/react-query'
import { api, unwrap } from '../../../api/client.ts'
import type { FileRecord, Network } from '../files.ts'

/** The signature of a file, or null, and the swaps of its CID, newest first. */
export const useDetails = (network: Network, { id }: FileRecord) =>
  useQuery({
    queryKey: ['file', network, id, 'details'],
    queryFn: async () =>
      (await unwrap(api.GET('/v0/files/{network}/{id}/details', { params: { path: { network, id } } }))).data,
  })
