import { useMutation, useQueryClient } from '@tanstack/react-query'

/** Header for requests that start an operation: the API responds at once, and events report the end. */
export const AT_ONCE = { Prefer: 'respond-async' }

/** A mutation that refetches what the page shows afterwards, even if it failed. */
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
