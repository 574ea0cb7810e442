/** The IPFS Pinning Service API 1.0.0, at `/psa`: what Kubo speaks with `ipfs pin remote`. */
import type { z } from 'zod'
import type { Principal } from '../../accounts/authenticator.ts'
import type { Pool } from '../../db/pool.ts'
import { ApiError, messages, notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { shared } from '../../http/shared.ts'
import type { WorkerStatus } from '../../operations/workers.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { NewPin, PinService } from '../pins/service.ts'
import { pickDelegates } from './delegates.ts'
import { findPin, listPins } from './list.ts'
import { readOrigins } from './origins.ts'
import { toPinStatus } from './pin-status.ts'
import { pin, pinResults, pinStatus, pinsQuery, requestParams } from './schema.ts'
import { removePin, replacePin } from './service.ts'

export interface PsaRouteServices {
  pool: Pool
  pins: PinService
  workers: WorkerStatus
  wakeDispatcher: () => void
  allowPrivateHostNodes: boolean
}

const TAG = 'Pinning Service API'
const PINS = '/psa/pins'
const ONE = '/psa/pins/:requestid'
/** Kubo asks every half second for each pin that it waits for; workers write their addresses every five. */
const DELEGATES_MS = 2000

export function psaRoutes(services: PsaRouteServices): Route[] {
  const { pool, pins, workers, wakeDispatcher, allowPrivateHostNodes } = services
  const readDelegates = shared(DELEGATES_MS, async () => {
    const { ipfs } = await workers.read()
    return pickDelegates(ipfs?.addresses ?? [])
  })

  const newPin = ({ plan }: Principal, body: z.output<typeof pin>): NewPin => {
    // The specification's answer to a token that has not paid for this.
    if (!plan.pinByCid) throw new ApiError(409, 'insufficient_funds', messages.pinByCidPlan)
    return {
      cid: body.cid,
      canonical: canonicalCid(parseCid(body.cid)),
      name: body.name ?? null,
      groupId: null,
      keyvalues: body.meta ?? {},
      hostNodes: readOrigins(body.origins ?? [], allowPrivateHostNodes),
      hostNodesOptional: true,
    }
  }

  const show = async (workspaceId: string, id: string) => {
    const [row, delegates] = await Promise.all([findPin(pool, workspaceId, id), readDelegates()])
    if (!row) throw notFound('There is no such pin request')
    return { body: toPinStatus(row, delegates) }
  }

  return [
    route({
      method: 'get',
      path: PINS,
      id: 'psaListPins',
      tag: TAG,
      summary: 'List pins',
      description:
        'The newest first; files that were uploaded are among them. More than `limit` come only where more ' +
        'were created in one millisecond.',
      scope: 'org:files:read',
      query: pinsQuery,
      success: { status: 200, description: 'A page of pins.', body: pinResults },
      async handle({ principal, query }) {
        const { cid, status, after, limit, ...filter } = query
        const cids = cid?.map((each) => canonicalCid(parseCid(each)))
        const [{ count, results }, delegates] = await Promise.all([
          listPins(pool, principal.workspaceId, { ...filter, cids, statuses: status, from: after }, limit),
          readDelegates(),
        ])
        return { body: { count, results: results.map((row) => toPinStatus(row, delegates)) } }
      },
    }),
    route({
      method: 'post',
      path: PINS,
      id: 'psaAddPin',
      tag: TAG,
      summary: 'Pin a CID',
      scope: 'org:files:write',
      body: pin,
      success: { status: 202, description: 'The pin.', body: pinStatus },
      errors: [409],
      async handle({ principal, body }) {
        const { record } = await pins.accept(principal, newPin(principal, body))
        return show(principal.workspaceId, record.id)
      },
    }),
    route({
      method: 'get',
      path: ONE,
      id: 'psaGetPin',
      tag: TAG,
      summary: 'Get a pin',
      scope: 'org:files:read',
      params: requestParams,
      success: { status: 200, description: 'The pin.', body: pinStatus },
      errors: [404],
      handle: ({ principal, params }) => show(principal.workspaceId, params.requestid),
    }),
    route({
      method: 'post',
      path: ONE,
      id: 'psaReplacePin',
      tag: TAG,
      summary: 'Replace a pin',
      description:
        'The new pin has an id of its own, and the old one is gone at once. What the old one kept is released ' +
        'after the new one has been retrieved: blocks that both have are not fetched again.',
      scope: 'org:files:write',
      params: requestParams,
      body: pin,
      success: { status: 202, description: 'The new pin.', body: pinStatus },
      errors: [404, 409],
      async handle({ principal, params, body }) {
        const id = await replacePin(pool, principal, params.requestid, newPin(principal, body))
        wakeDispatcher()
        return show(principal.workspaceId, id)
      },
    }),
    route({
      method: 'delete',
      path: ONE,
      id: 'psaRemovePin',
      tag: TAG,
      summary: 'Remove a pin',
      description: 'It is gone at once; an operation releases its content unless another file keeps it.',
      scope: 'org:files:write',
      params: requestParams,
      success: { status: 202, description: 'Removed.' },
      errors: [404],
      async handle({ principal, params, res }) {
        await removePin(pool, principal.workspaceId, params.requestid)
        wakeDispatcher()
        res.status(202).end()
        return undefined
      },
    }),
  ]
}
