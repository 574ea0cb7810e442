/** Ends what a benchmark has started if the benchmark itself is told to end. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Disposes of `stack` at a signal, and then exits, until the stack is disposed of anyway. */
export function endOnSignal(stack: AsyncDisposableStack): void {
  const end = () => {
    for (const signal of SIGNALS) process.off(signal, end)
    // The benchmark fails as its servers go; that must not end the process before the last of them is gone.
    process.on('uncaughtException', () => {})
    void stack.disposeAsync().finally(() => process.exit(1))
  }
  for (const signal of SIGNALS) process.once(signal, end)
  stack.defer(() => {
    for (const signal of SIGNALS) process.off(signal, end)
  })
}
