/**
 * Makes Node's test runner cheap: `node --import ./test/support/async-context.ts --test …`.
 *
 * To know which test an error or a declared test belongs to, the runner follows each promise by `async_hooks`, for 3 µs
 * a promise: two fifths of the processor time of the embedded storage's tests. With this module it uses
 * AsyncLocalStorage instead, which costs a fifteenth of that. Only the runner sees these replacements: all other code
 * has Node's own. Without this module all tests have the same outcome (`test/async-context.test.ts`), but take longer.
 */
import { createRequire } from 'node:module'

const hooks = createRequire(import.meta.url)('node:async_hooks') as typeof import('node:async_hooks')
const { AsyncLocalStorage, AsyncResource, createHook, executionAsyncId } = hooks

/** The async id of the running test. */
const running = new AsyncLocalStorage<number>()
let tell: Parameters<typeof createHook>[0]['init']

class TestResource extends AsyncResource {
  constructor(...args: ConstructorParameters<typeof AsyncResource>) {
    super(...args)
    tell?.(this.asyncId(), args[0], executionAsyncId(), this)
  }

  override runInAsyncScope<This, Result>(
    work: (this: This, ...args: never[]) => Result,
    self?: This,
    ...args: unknown[]
  ): Result {
    const bound = work.bind(self as This, ...(args as never[])) as () => Result
    return super.runInAsyncScope(() => running.run(this.asyncId(), bound))
  }
}

const replaced = {
  createHook({ init }: Parameters<typeof createHook>[0]) {
    tell = init
    return { enable() {}, disable() {} }
  },
  executionAsyncId: () => running.getStore() ?? executionAsyncId(),
  AsyncResource: TestResource,
}
Object.assign(hooks, replaced)
await import('node:test')
Object.assign(hooks, { createHook, executionAsyncId, AsyncResource })
