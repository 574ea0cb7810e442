/** Where a page of a list begins, and how many rows to read. */
export interface Cursor {
  /** The last row of the previous page. */
  after: string | undefined
  limit: number
}

/** The arguments of Prisma's `findMany` for a page of a list, newest first. */
export const newestFirst = <Where extends object>({ after, limit }: Cursor, where: Where) => ({
  where: { ...where, ...(after && { id: { lt: after } }) },
  orderBy: { id: 'desc' as const },
  take: limit,
})
