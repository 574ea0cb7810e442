/** Routes for agent proxies, which send AGENT_PROXY_KEY; no other key is accepted. */
import { createHash, timingSafeEqual } from 'node:crypto'
import express, { type RequestHandler, Router } from 'express'
import type { z } from 'zod'
import { unauthorized } from '../errors.ts'
import { parseInput } from './shapes.ts'

/** A sync of a thousand agents that have all used models in the last second. */
const BODY_BYTES = 8_388_608

/** @param key AGENT_PROXY_KEY. @returns a router, and how to add a route that takes and answers JSON. */
export function proxyControl(key: string) {
  const router = Router({ caseSensitive: true })
  const post = <S extends z.ZodType>(
    path: string,
    shape: S,
    answer: (body: z.output<S>) => Promise<object>,
  ) =>
    router.post(path, requireKey(key), express.json({ limit: BODY_BYTES }), async (req, res) => {
      res.set('Cache-Control', 'no-store').json(await answer(parseInput(shape, req.body)))
    })
  return { router, post }
}

const sha256 = (text: string) => createHash('sha256').update(text).digest()

/** @throws ApiError 401 without the right key. */
function requireKey(key: string): RequestHandler {
  const expected = sha256(`Bearer ${key}`)
  return (req, _res, next) => {
    if (!timingSafeEqual(sha256(req.headers.authorization ?? ''), expected))
      throw unauthorized('AGENT_PROXY_KEY is required')
    next()
  }
}
