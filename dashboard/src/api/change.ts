import { useMutation, useQueryClient } from '@tanstack/react-query'

/** A header of requests that start an operation: the answer does not wait for its end, which events tell of. */
export const AT_ONCE = { Prefer: 'respond-async' }

/** A change by the API: what is shown is read again behind it, also where it failed. */
export function useChange<Made, Given = void>(
  change: (given: Given) => Promise<Made>,
  onSuccess?: (made: Made) => void,
) {
  const queries = useQueryClient()
  return useMutation({
    mutationFn: change,
    onSuccess,
    onSettled: () => queries.invalidateQueries(),
  })
}
