import { type QueryKey, useInfiniteQuery } from '@tanstack/react-query'

/** A paginated list: the items read so far, and a function that reads more. */
export function usePages<Item>(
  queryKey: QueryKey,
  read: (pageToken: string | undefined) => Promise<{ items: Item[]; next: string }>,
  options: { enabled?: boolean; refetchInterval?: number } = {},
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => read(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next || undefined,
    ...options,
  })
  return {
    items: query.data?.pages.flatMap(({ items }) => items),
    error: query.error,
    hasMore: query.hasNextPage,
    isReading: query.isFetchingNextPage,
    readMore: () => void query.fetchNextPage(),
  }
}
