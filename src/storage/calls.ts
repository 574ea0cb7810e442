/** Runs the calls of a driver: each ends on `stop` as well, and every failure is an error of the port. */
import { StorageError } from './port.ts'

export interface Calls {
  call<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Like `call`, for results that are passed on piece by piece. */
  iterate<T>(signal: AbortSignal, run: (signal: AbortSignal) => AsyncIterable<T>): AsyncGenerator<T>
}

/**
 * @param stopped fires when the driver stops.
 * @param driver.assertFit throws why the driver cannot be called now; it may make it fit first.
 * @param driver.explain converts the driver's own errors into errors of the port.
 */
export function callsUntil(
  stopped: AbortSignal,
  driver: { assertFit?: () => void | Promise<void>; explain?: (error: unknown) => unknown } = {},
): Calls {
  const { assertFit, explain } = driver
  const failed = (error: unknown, { aborted }: AbortSignal): unknown =>
    aborted
      ? new StorageError('aborted', 'The call was aborted', { cause: error })
      : (explain?.(error) ?? error)
  return {
    async call(signal, run) {
      const combined = AbortSignal.any([signal, stopped])
      try {
        combined.throwIfAborted()
        await assertFit?.()
        return await run(combined)
      } catch (error) {
        throw failed(error, combined)
      }
    },
    async *iterate(signal, run) {
      const combined = AbortSignal.any([signal, stopped])
      try {
        combined.throwIfAborted()
        await assertFit?.()
        for await (const item of run(combined)) {
          combined.throwIfAborted()
          yield item
        }
      } catch (error) {
        throw failed(error, combined)
      }
    },
  }
}
