/** Text as part of a LIKE pattern that matches it and nothing else; Prisma's `contains` does not do this. */
export const escapeLike = (text: string): string => text.replace(/[\\%_]/g, '\\$&')
