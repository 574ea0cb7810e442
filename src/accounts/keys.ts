/** API keys of a workspace: created, listed and revoked, over HTTP and by `berth keys`. */
import { uuidv7 } from 'uuidv7'
import type { Prisma, PrismaClient } from '../db/prisma.ts'
import { escapeLike } from '../db/statements/statement.ts'
import type { Audience } from '../http/principal.ts'
import { isUuid } from '../lib/read.ts'
import { createKeyPair, signToken } from './tokens.ts'

export interface NewKey {
  workspaceId: string
  userId: string | null
  name: string
  scopes: string[]
  maxUses?: number | null
  uses?: number
  expiresAt?: Date | null
  /** Where it works; everywhere by default. */
  audience?: Audience | null
  /** Instead of the hash of a new secret. */
  secretHash?: Uint8Array<ArrayBuffer>
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
  /** Part of the name, case-insensitive. */
  name?: string | undefined
  /** Only keys of this user. */
  userId?: string | undefined
}

export class KeyService {
  readonly #prisma: PrismaClient
  readonly #signingKey: Uint8Array

  constructor(prisma: PrismaClient, signingKey: Uint8Array) {
    this.#prisma = prisma
    this.#signingKey = signingKey
  }

  /** @param db a transaction to create the key in. */
  async create(key: NewKey, db: Prisma.TransactionClient = this.#prisma): Promise<CreatedKey> {
    const id = uuidv7()
    const { publicKey, secret, secretHash } = createKeyPair()
    const token = await this.tokenOf({ expiresAt: null, ...key, id, publicKey })
    await db.apiKey.create({ data: { secretHash, ...key, id, publicKey } })
    return { id, token, publicKey, secret }
  }

  /** The token of a key. */
  tokenOf(key: {
    id: string
    workspaceId: string
    userId: string | null
    publicKey: string
    expiresAt: Date | null
  }): Promise<string> {
    const { id: keyId, workspaceId, userId, publicKey, expiresAt } = key
    const who = { keyId, workspaceId, userId: userId ?? undefined, publicKey }
    return signToken(this.#signingKey, { ...who, expiresAt: expiresAt ?? undefined })
  }

  /** A workspace's keys starting at an offset, newest first, and how many match in all. */
  async list(
    workspaceId: string,
    { offset, limit, ...filter }: KeyFilter & { offset: number; limit: number },
    db: Prisma.TransactionClient = this.#prisma,
  ) {
    const where = this.#matching(workspaceId, filter)
    const [keys, count] = await Promise.all([
      db.apiKey.findMany({
        where,
        orderBy: { id: 'desc' },
        skip: offset,
        take: limit,
        omit: { secretHash: true },
      }),
      db.apiKey.count({ where }),
    ])
    return { keys, count }
  }

  /**
   * A workspace's keys, newest first, with the names of their users. @param filter.after the last key of the previous
   * page.
   */
  page(
    workspaceId: string,
    { after, limit, ...filter }: KeyFilter & { after?: string | undefined; limit?: number },
    db: Prisma.TransactionClient = this.#prisma,
  ) {
    return db.apiKey.findMany({
      where: { ...this.#matching(workspaceId, filter), ...(after && { id: { lt: after } }) },
      orderBy: { id: 'desc' },
      ...(limit !== undefined && { take: limit }),
      omit: { secretHash: true },
      include: { user: { select: { name: true } } },
    })
  }

  #matching(workspaceId: string, filter: KeyFilter) {
    return {
      workspaceId,
      session: null,
      ...(filter.userId && { userId: filter.userId }),
      ...(filter.revoked !== undefined && { revokedAt: filter.revoked ? { not: null } : null }),
      ...(filter.limitedUse !== undefined && { maxUses: filter.limitedUse ? { not: null } : null }),
      ...(filter.exhausted && { uses: { gte: this.#prisma.apiKey.fields.maxUses } }),
      ...(filter.exhausted === false && {
        OR: [{ maxUses: null }, { uses: { lt: this.#prisma.apiKey.fields.maxUses } }],
      }),
      ...(filter.name && { name: { contains: escapeLike(filter.name), mode: 'insensitive' as const } }),
    }
  }

  /** Finds a key by its id or its public half, in one workspace or, if none is given, in all. */
  async find(
    key: string,
    workspaceId?: string,
  ): Promise<{ id: string; workspaceId: string; userId: string | null; scopes: string[] } | undefined> {
    const where = {
      session: null,
      ...(workspaceId !== undefined && { workspaceId }),
      ...(isUuid(key) ? { id: key } : { publicKey: key }),
    }
    const select = { id: true, workspaceId: true, userId: true, scopes: true }
    return (await this.#prisma.apiKey.findFirst({ where, select })) ?? undefined
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
