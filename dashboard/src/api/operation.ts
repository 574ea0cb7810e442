import { api, RequestError, unwrap } from './client.ts'

/** Seconds that one request waits. If the operation takes longer, the next request continues. */
const WAIT_S = 30

/**
 * Waits for the end of an operation.
 * @param onStep receives the current step.
 * @throws RequestError with the operation's message if it does not succeed.
 */
export async function finished(id: string, onStep: (step: string | null) => void): Promise<void> {
  for (let wait = 1; ; wait = Math.min(2 * wait, WAIT_S)) {
    const { data } = await unwrap(
      api.GET('/v0/operations/{id}', { params: { path: { id }, query: { wait } } }),
    )
    if (data.state === 'succeeded') return
    if (data.finished_at) throw new RequestError(500, data.error ?? data.state)
    onStep(data.step)
  }
}
