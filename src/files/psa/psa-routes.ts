/** The IPFS Pinning Service API 1.0.0, at `/psa`, as used by Kubo's `ipfs pin remote`. */
import type { z } from 'zod'
import { type Pool, type Queryable, transaction } from '../../db/pool.ts'
import { findPin } from '../../db/statements/pins.ts'
import { ApiError, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { coalesce } from '../../lib/coalesce.ts'
import { canonicalCid, parseCid, parseContentCid } from '../cid.ts'
import { watchNameIndex } from '../name-index.ts'
import { insertPin, type NewPin } from '../pins/pin-inserts.ts'
import { removeFile } from '../remove.ts'
import type { FileServices } from '../services.ts'
import { pickDelegates, readOrigins } from './hints.ts'
import { listPins, toPinStatus } from './psa-pins.ts'
import { pin, pinResults, pinStatus, pinsQuery, requestParams, type Status } from './psa-schema.ts'

const route = routesOf('Pinning Service API')
const PINS = '/psa/pins'
const ONE = '/psa/pins/:requestid'
/** Kubo polls every half second for each pin that it waits for; workers write their addresses every five seconds. */
const DELEGATES_MS = 2000

export function psaRoutes(services: FileServices): Route[] {
  const { config, pool, pins, workers, operations, searches, admitPin } = services
  const readDelegates = coalesce(DELEGATES_MS, async () => {
    const { ipfs } = await workers.read()
    return pickDelegates(ipfs?.addresses ?? [])
  })

  const nameIndex = watchNameIndex(pool)

  const newPin = ({ plan }: Principal, body: z.output<typeof pin>): NewPin => {
    // The specification's response if the plan does not include this.
    if (!plan.pinByCid) throw new ApiError(409, 'insufficient_funds', messages.pinByCidPlan)
    return {
      cid: body.cid,
      canonical: canonicalCid(parseContentCid(body.cid)),
      name: body.name ?? null,
      groupId: null,
      keyvalues: body.meta ?? {},
      hostNodes: readOrigins(body.origins ?? [], config.BERTH_ALLOW_PRIVATE_HOST_NODES),
      hostNodesOptional: true,
    }
  }

  const show = async (workspaceId: string, id: string) => {
    const [row, delegates] = await Promise.all([findPin.first(pool, id, workspaceId), readDelegates()])
    if (!row) throw notFound('There is no such pin request')
    return { body: toPinStatus(row, delegates) }
  }

  return [
    route({
      method: 'get',
      path: PINS,
      id: 'psaListPins',
      summary: 'List pins',
      description:
        'Newest first, including uploaded files. A page has more than `limit` pins only if more ' +
        'than that were created in one millisecond.',
      scope: 'org:files:read',
      query: pinsQuery,
      success: { description: 'A page of pins.', body: pinResults },
      async handle({ principal, query, signal }) {
        const { cid, status, after, limit, ...filter } = query
        // The compliance suite looks up a pin by name right after requesting it, without a status.
        const statuses: Status[] =
          status ?? (query.name === undefined ? ['pinned'] : ['queued', 'pinning', 'pinned'])
        const cids = cid?.map((each) => canonicalCid(parseCid(each)))
        const isPart = query.name !== undefined && query.match.endsWith('partial')
        const sample = isPart ? await nameIndex() : undefined
        const asked = { ...filter, cids, statuses, from: after, sample }
        const list = (db: Queryable) => listPins(db, principal.workspaceId, asked, limit)
        const isSearch = query.name !== undefined || query.meta !== undefined
        const [{ count, results }, delegates] = await Promise.all([
          isSearch ? searches.run(principal, signal, list) : list(pool),
          readDelegates(),
        ])
        return { body: { count, results: results.map((row) => toPinStatus(row, delegates)) } }
      },
    }),
    route({
      method: 'post',
      path: PINS,
      id: 'psaAddPin',
      summary: 'Pin a CID',
      scope: 'org:files:write',
      body: pin,
      success: { status: 202, description: 'The pin.', body: pinStatus },
      errors: [409, 507],
      entryWithChange: true,
      async handle({ principal, body, entry }) {
        const asked = newPin(principal, body)
        await admitPin()
        const { record } = await pins.accept(principal, asked, { entry })
        operations.wake()
        return show(principal.workspaceId, record.id)
      },
    }),
    route({
      method: 'get',
      path: ONE,
      id: 'psaGetPin',
      summary: 'Get a pin',
      scope: 'org:files:read',
      params: requestParams,
      success: { description: 'The pin.', body: pinStatus },
      errors: [404],
      handle: ({ principal, params }) => show(principal.workspaceId, params.requestid),
    }),
    route({
      method: 'post',
      path: ONE,
      id: 'psaReplacePin',
      summary: 'Replace a pin',
      description:
        'The new pin has its own id, and the old pin is gone at once. The old pin’s content is released ' +
        'after the new one has been retrieved, so that shared blocks are not fetched again.',
      scope: 'org:files:write',
      params: requestParams,
      body: pin,
      success: { status: 202, description: 'The new pin.', body: pinStatus },
      errors: [404, 409, 507],
      async handle({ principal, params, body }) {
        const asked = newPin(principal, body)
        await admitPin()
        const id = await replacePin(pool, principal, params.requestid, asked)
        operations.wake()
        return show(principal.workspaceId, id)
      },
    }),
    route({
      method: 'delete',
      path: ONE,
      id: 'psaRemovePin',
      summary: 'Remove a pin',
      description: 'The pin is gone at once; an operation releases its content unless another file keeps it.',
      scope: 'org:files:write',
      params: requestParams,
      success: { status: 202, description: 'Removed.' },
      errors: [404],
      async handle({ principal, params, res }) {
        await removePin(pool, principal.workspaceId, params.requestid)
        operations.wake()
        res.status(202).end()
        return undefined
      },
    }),
  ]
}

const NETWORK = 'public'
const missing = () => notFound('There is no such pin request')

/**
 * Replaces a pin with a new one in a single transaction: clients never see both or neither. The old pin's content is
 * released after the new pin's retrieval has ended.
 * @returns the new pin's id.
 * @throws ApiError 404 if the request does not exist.
 */
async function replacePin(pool: Pool, caller: Principal, id: string, pin: NewPin): Promise<string> {
  const { workspaceId } = caller
  return transaction(pool, async (client) => {
    const accepted = await insertPin(client, caller, pin)
    if (!accepted) throw new Error('A pin without a group and without an idempotency key was refused')
    const successor = accepted.record.id
    const operation = await removeFile(client, { workspaceId, network: NETWORK, id, only: 'any', successor })
    if (!operation) throw missing()
    return successor
  })
}

/** Removes a pin in any status. @throws ApiError 404 if the request does not exist. */
async function removePin(pool: Pool, workspaceId: string, id: string): Promise<void> {
  if (!(await removeFile(pool, { workspaceId, network: NETWORK, id, only: 'any' }))) throw missing()
}
