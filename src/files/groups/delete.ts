import type { PrismaClient } from '../../db/prisma.ts'

/** Files that one statement takes out of a group: it must end long before the statement timeout. */
const BATCH = 5000

/**
 * Deletes a group; its files stay, in no group. Not one transaction: if it ends halfway, the group has fewer
 * files, and the next call goes on.
 */
export async function deleteGroup(prisma: PrismaClient, id: string): Promise<void> {
  let taken: number
  do {
    // Rows that somebody else is writing are left to the reference's own ON DELETE SET NULL, with late comers.
    taken = await prisma.$executeRaw`
      UPDATE file SET group_id = NULL WHERE id IN (
        SELECT id FROM file WHERE group_id = ${id}::uuid LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`
  } while (taken === BATCH)
  await prisma.group.deleteMany({ where: { id } })
}
