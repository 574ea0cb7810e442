import { z } from 'zod'
import { notFound } from '../errors.ts'
import { apiKey, timestamp, uuid, withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { text, visibleText } from '../http/shapes.ts'
import { allowProgram, collectKey } from './program-sign-in.ts'
import type { AccountServices } from './services.ts'

const route = routesOf('Sessions')
const DAY_MS = 86_400_000

const secret = (example: string) =>
  withExample(text(43), example).regex(/^[\w-]{43}$/, 'must be 32 bytes in base64url')

/** Signs programs in through the browser of their user. */
export function programRoutes({ prisma, keys }: AccountServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/v0/sessions/programs',
      id: 'allowProgram',
      summary: 'Sign in a program',
      description:
        'For the page to which a program, such as `berth login`, sends the browser. Creates an API key with the rights of the session, except for those over the instance. The program collects it within five minutes. The key is in the list of keys, and can be revoked there. 409 if this sign-in was already allowed.',
      scope: 'any',
      session: true,
      body: z.object({
        challenge: secret('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM').describe(
          'The SHA-256 of the program’s verifier.',
        ),
        name: withExample(visibleText(200), 'laptop').describe('The machine, as the program names it.'),
        days: withExample(z.int('must be a whole number').min(1).max(365), 90).describe(
          'After how many days the key expires.',
        ),
      }),
      success: {
        description: 'The key, which its program has not collected yet.',
        body: z.object({ data: z.object({ id: uuid, expiresAt: timestamp }) }),
      },
      errors: [409],
      async handle({ principal, body: { challenge, name, days } }) {
        const { workspaceId, userId, scopes } = principal
        const expiresAt = new Date(Date.now() + days * DAY_MS)
        const id = await allowProgram(prisma, {
          ...{ challenge, workspaceId, userId, expiresAt },
          name: `berth on ${name}`,
          scopes: scopes.filter((scope) => !scope.startsWith('instance:')),
        })
        return { body: { data: { id, expiresAt: expiresAt.toISOString() } } }
      },
    }),
    route({
      method: 'post',
      path: '/v0/login/program',
      id: 'collectProgramKey',
      summary: 'Collect the key of a signed-in program',
      description:
        'A program asks every few seconds until its user has allowed it in the dashboard. The key is shown once. 404 until then, and again five minutes later.',
      scope: null,
      audited: false,
      body: z.object({
        verifier: secret('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk').describe(
          'The program’s own random secret.',
        ),
      }),
      success: {
        description: 'The key.',
        body: z.object({ data: z.object({ id: uuid, token: apiKey, expiresAt: timestamp.nullable() }) }),
      },
      errors: [404],
      async handle({ body: { verifier } }) {
        const key = await collectKey(keys, prisma, verifier)
        if (!key) throw notFound('Nobody has allowed this sign-in yet')
        const { id, token, expiresAt } = key
        return { body: { data: { id, token, expiresAt: expiresAt?.toISOString() ?? null } } }
      },
    }),
  ]
}
