import assert from 'node:assert/strict'
import { it } from 'node:test'
import { beginSignIn } from '../../../src/accounts/passkeys.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { useDatabase } from '../../support/database.ts'

const { pool } = await useDatabase()

// Anyone may ask for challenges, so without this they would fill the table.
it('a new challenge for passkeys removes the ones that have expired', async () => {
  const prisma = createPrisma(pool)
  const party = { id: 'localhost', origin: 'http://localhost' }
  for (let i = 0; i < 2; i++) await beginSignIn(prisma, party)
  assert.equal(await prisma.passkeyChallenge.count(), 2)
  await pool.query(`UPDATE passkey_challenge SET expires_at = now() - interval '1 s'`)
  await beginSignIn(prisma, party)
  assert.equal(await prisma.passkeyChallenge.count(), 1)
})
