/** What visitors see who get no page: people a small page, programs JSON as of the API. */
import type { Request, Response } from 'express'
import { ApiError } from '../../errors.ts'
import { isNavigation } from '../agents/credential.ts'

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

/** Tells why. @throws what is none of an answer, and what can no longer be told. */
export function refuse(error: unknown, req: Request, res: Response): void {
  if (!(error instanceof ApiError) || res.headersSent || res.destroyed) throw error
  const { status, code, message, headers } = error
  // It is the agent's, or the visitor's: not for the operator's log of failures.
  req.log.debug({ err: error }, message)
  res.status(status).set({ 'Error-Code': code, 'Cache-Control': 'no-store', ...headers })
  if (!isNavigation(req)) return void res.json({ error: message })
  res.set('Content-Security-Policy', POLICY).type('html').send(toPage(status, message))
}

/** @param message has no character that HTML reads: it is one of ours, with numbers in it. */
const toPage = (status: number, message: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:20vh auto;max-width:32rem;padding:0 1rem}</style>
<h1>${status}</h1>
<p>${message}</p>
</html>
`
