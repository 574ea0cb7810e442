/** API keys of a workspace: created, listed and revoked, over HTTP and by `berth keys`. */
import { uuidv7 } from 'uuidv7'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { escapeLike } from '../db/statements/statement.ts'
import { createKeyPair, signToken } from './tokens.ts'

export interface NewKey {
  workspaceId: string
  userId: string | null
  name: string
  scopes: string[]
  maxUses?: number | null
  expiresAt?: Date | null
}

/** A key right after its creation: the only time that its token and its secret are shown. */
export interface CreatedKey {
  id: string
  token: string
  publicKey: string
  secret: string
}

export interface KeyFilter {
  revoked?: boolean | undefined
  /** Keys with a limited number of uses, and those that have none left. */
  limitedUse?: boolean | undefined
  exhausted?: boolean | undefined
  /** Part of the name, in any case. */
  name?: string | undefined
  offset?: number
  limit?: number
}

export class KeyService {
  readonly #prisma: PrismaClient
  readonly #signingKey: Uint8Array

  constructor(prisma: PrismaClient, signingKey: Uint8Array) {
    this.#prisma = prisma
    this.#signingKey = signingKey
  }

  /** @param db a transaction that the key is to be part of. */
  async create(key: NewKey, db: Prisma.TransactionClient = this.#prisma): Promise<CreatedKey> {
    const id = uuidv7()
    const { publicKey, secret, secretHash } = createKeyPair()
    const { workspaceId, userId, expiresAt } = key
    const token = await signToken(this.#signingKey, {
      keyId: id,
      workspaceId,
      userId: userId ?? undefined,
      publicKey,
      expiresAt: expiresAt ?? undefined,
    })
    await db.apiKey.create({ data: { id, ...key, publicKey, secretHash } })
    return { id, token, publicKey, secret }
  }

  /** A page of a workspace's keys, newest first, and how many match in all. */
  async list(workspaceId: string, filter: KeyFilter) {
    const where = {
      workspaceId,
      ...(filter.revoked !== undefined && { revokedAt: filter.revoked ? { not: null } : null }),
      ...(filter.limitedUse !== undefined && { maxUses: filter.limitedUse ? { not: null } : null }),
      ...(filter.exhausted && { uses: { gte: this.#prisma.apiKey.fields.maxUses } }),
      ...(filter.exhausted === false && {
        OR: [{ maxUses: null }, { uses: { lt: this.#prisma.apiKey.fields.maxUses } }],
      }),
      ...(filter.name && { name: { contains: escapeLike(filter.name), mode: 'insensitive' as const } }),
    }
    const [keys, count] = await Promise.all([
      this.#prisma.apiKey.findMany({
        where,
        orderBy: { id: 'desc' },
        skip: filter.offset ?? 0,
        ...(filter.limit !== undefined && { take: filter.limit }),
        omit: { secretHash: true },
      }),
      this.#prisma.apiKey.count({ where }),
    ])
    return { keys, count }
  }

  /** A key by its id or its public half: of one workspace, or of any where none is given. */
  async find(key: string, workspaceId?: string): Promise<{ id: string; scopes: string[] } | undefined> {
    const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(key)
    const where = {
      ...(workspaceId !== undefined && { workspaceId }),
      ...(isId ? { id: key } : { publicKey: key }),
    }
    return (await this.#prisma.apiKey.findFirst({ where, select: { id: true, scopes: true } })) ?? undefined
  }

  /** Revokes a key; every process refuses it from then on. Idempotent. */
  async revoke(id: string): Promise<void> {
    await this.#prisma.$transaction([
      this.#prisma.apiKey.updateMany({
        where: { id, revokedAt: null },
        data: { revokedAt: new Date() },
      }),
      this.#prisma.$executeRaw`SELECT pg_notify('berth_api_key', ${id})`,
    ])
  }
}
