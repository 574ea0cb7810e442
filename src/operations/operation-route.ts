/**
 * Routes that start an operation and wait for it. Each declares two bodies: one for the operation's success, and one
 * for a 202, if the client does not wait that long. A route whose response does not depend on the operation's end
 * declares `operation: true` instead, and calls `Operations.started`.
 */
import { z } from 'zod'
import { contractError } from '../errors.ts'
import { uuid, withExample } from '../http/fields.ts'
import type { Declared, Route, Schema } from '../http/route.ts'
import { type InputOf, OPERATION_STATES, type ResultOf } from './catalog.ts'
import { noSubject, type Subject, type SubjectKind } from './enqueue.ts'
import type { Finished, Operations } from './operations.ts'

/** The operation in a response that does not wait for its end. */
export const startedOperation = z.object({
  id: uuid,
  state: withExample(z.enum(OPERATION_STATES), 'running'),
})

const successful = z.object({ success: z.literal(true) })

export type Unsuccessful = Exclude<Finished<SubjectKind>, { state: 'succeeded' }>

/**
 * A handler's outcome: it started an operation, or found that there is nothing to wait for. `success: true` is added to
 * all bodies.
 */
type Begun<K extends SubjectKind, Done, Pending = Done> =
  | { body: Done }
  | ((
      | { subject: Subject; input?: InputOf<K>; request?: string }
      /** It was committed together with a change. */
      | { operationId: string }
    ) & {
      /** The body of a 202; the operation is added to it. */
      pending: Pending
      /** The body once the operation has succeeded. */
      done(result: ResultOf<K>): Done | Promise<Done>
      /** The body if the operation ended otherwise; default: an error, see {@link failureOf}. */
      failed?(ended: Unsuccessful): Done | undefined
    })

interface Failure {
  /** Statuses other than 500, by the operation's error code. */
  statuses?: Record<string, number>
  /** Replaces the operation's own message. */
  message?: string
}

type OperationDeclared<
  K extends SubjectKind,
  P,
  Q,
  B,
  Done extends z.ZodObject,
  Pending extends z.ZodObject,
  More,
> = Omit<Declared<P, Q, B>, 'success' | 'otherSuccess' | 'operation' | 'handle'> & {
  /** The 200; its body also has `success`. */
  success: { description: string; body: Done }
  /** The 202; its body also has `success` and the operation. Default: the fields of the 200. */
  pending: { description: string; body?: Pending }
  failure?: Failure
  begin(
    context: Parameters<Declared<P, Q, B, More>['handle']>[0],
  ): Promise<Begun<K, z.input<Done>, z.input<Pending>>>
}

/** Returns the function that declares such routes. `More` is what the guard adds to a context, such as the agent. */
export const operationRoutes =
  <More = unknown>(operations: Operations, tag: string) =>
  <
    K extends SubjectKind,
    Done extends z.ZodObject,
    Pending extends z.ZodObject = Done,
    P extends Schema | undefined = undefined,
    Q extends Schema | undefined = undefined,
    B extends Schema | undefined = undefined,
  >(
    kind: K,
    { begin, success, pending, failure, ...declared }: OperationDeclared<K, P, Q, B, Done, Pending, More>,
  ): Route => ({
    ...(declared as Omit<Route, 'tag' | 'success' | 'handle'>),
    tag,
    operation: true,
    success: { status: 200, description: success.description, body: successful.extend(success.body.shape) },
    otherSuccess: {
      status: 202,
      description: pending.description,
      body: successful.extend({ ...(pending.body ?? success.body).shape, operation: startedOperation }),
    },
    async handle(context) {
      const begun = await begin(context as Parameters<typeof begin>[0])
      if ('body' in begun) return { body: { success: true, ...begun.body } }
      const { operation, finished, headers } = await ('operationId' in begun
        ? operations.started(kind, begun.operationId, context)
        : operations.start(kind, begun.subject, { ...context, input: begun.input, request: begun.request }))
      if (!finished) return { status: 202, headers, body: { success: true, ...begun.pending, operation } }
      const body =
        finished.state === 'succeeded' ? await begun.done(finished.result) : begun.failed?.(finished)
      if (!body) throw failureOf(kind, finished as Unsuccessful, headers, failure)
      return { headers, body: { success: true, ...body } }
    },
  })

/** The contract's message for a failure, with the reason in `Error-Detail`; 404 if the subject has been deleted. */
function failureOf(
  kind: SubjectKind,
  ended: Unsuccessful,
  headers: Record<string, string>,
  { statuses = {}, message }: Failure = {},
) {
  if (ended.state === 'canceled') return noSubject(kind)
  const { error_code: code, error, result } = ended
  const detail = typeof result.detail === 'string' ? result.detail : undefined
  const status = statuses[code ?? ''] ?? 500
  return contractError(status, code ?? 'internal', message ?? error, detail, {
    headers: { ...headers, ...(status === 503 && { 'retry-after': '5' }) },
  })
}
