import { z } from 'zod'
import { withExample } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { visibleText } from '../http/shapes.ts'
import { addFeedback } from './feedback.ts'
import type { AccountServices } from './services.ts'

const route = routesOf('Feedback')

const newFeedback = z.object({
  message: withExample(visibleText(10_000), 'The log of an agent could be longer.'),
})

/** `POST /v0/feedback`, for users and for agents. */
export function feedbackRoutes({ prisma }: AccountServices): Route[] {
  return [
    route({
      method: 'post',
      path: '/v0/feedback',
      id: 'sendFeedback',
      summary: 'Send a message to the operator',
      description:
        'It is stored with the names of the workspace and the user, and with the key or agent that sent it. 403 `Feedback ' +
        'limit reached` while 20 messages of the key or agent, or 100 of the workspace, wait for the operator.',
      scope: 'any',
      callers: ['gateway', 'platform'],
      body: newFeedback,
      success: { description: 'It is kept.', body: z.object({ success: z.literal(true) }) },
      async handle({ principal, body }) {
        await addFeedback(prisma, principal, body.message)
        return { body: { success: true } }
      },
    }),
  ]
}
