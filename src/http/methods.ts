/** The methods of a path: which of them pages of other origins may use, and how unsupported methods are handled. */
import type { Request, RequestHandler, Response } from 'express'
import { ApiError } from '../errors.ts'
import { allowPages, type Callers, isOpenToPages, openToPages } from './cross-origin.ts'

/** A route mounted at one of its paths. */
interface Mounted {
  declared: Callers & { method: string }
}

/** The methods of a path, in upper case. */
export function methodsOf(mounted: readonly Mounted[]): Set<string> {
  const methods = mounted.flatMap(({ declared: { method } }) =>
    method === 'get' ? [method, 'head'] : [method],
  )
  return new Set(methods.map((method) => method.toUpperCase()).sort())
}

/** The methods of a path that pages of any origin may use. */
export const methodsForPages = (mounted: readonly Mounted[] = []): Set<string> =>
  methodsOf(mounted.filter(({ declared }) => isOpenToPages(declared)))

/**
 * Lets pages read a route's response if its declaration allows it. @param methods the methods of its path for pages.
 */
export function answerPages(declared: Callers, methods: Set<string>): RequestHandler {
  const isOpen = isOpenToPages(declared)
  return (req, res, next) => {
    if (isOpen) letPagesRead(req, res, methods)
    next()
  }
}

/** Sets the headers for a response that pages may read, or for a preflight. */
export function letPagesRead(req: Request, res: Response, methods: Iterable<string>): void {
  if (req.method === 'OPTIONS') allowPages(req, res, methods)
  else openToPages(res)
}

/** Replaces POST with the method that the client names, if it is one of these. */
export const overrideMethod =
  (methods: Set<string>): RequestHandler =>
  (req, res, next) => {
    const method = req.get('x-http-method-override')?.toUpperCase() ?? ''
    if (req.method === 'POST' && methods.has(method)) {
      req.method = method
      res.locals.isOverridden = true
    }
    next('route')
  }

/**
 * Once its route is found, a POST that stands for HEAD becomes a POST again: its client expects the body of an error.
 */
export const restoreMethod: RequestHandler = (req, res, next) => {
  if (res.locals.isOverridden && req.method === 'HEAD') req.method = 'POST'
  next()
}

/**
 * Handles methods that a path does not support: OPTIONS returns the supported ones, all others return 405 (RFC 9110,
 * 15.5.6).
 * @param forPages the methods that pages of any origin may use.
 */
export function refuseMethod(methods: Set<string>, forPages: Set<string>): RequestHandler {
  const allow = [...methods].join(', ')
  return (req, res) => {
    if (forPages.size > 0) letPagesRead(req, res, forPages)
    if (req.method === 'OPTIONS') return void res.set({ allow }).status(204).end()
    const what = `${req.method} ${req.originalUrl.replace(/\?.*/s, '')}`
    throw new ApiError(405, 'method_not_allowed', `No such method here: ${what}`, { headers: { allow } })
  }
}
