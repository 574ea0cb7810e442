/** Metrics of operations in one process: their outcomes in a worker, and the last dispatch of a web process. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { OPERATION_KINDS, type OperationKind, type OperationState } from './catalog.ts'
import type { Dispatcher } from './dispatcher.ts'

export function addDispatcherMetrics(registry: Registry, dispatcher: Dispatcher): void {
  new Gauge({
    name: 'berth_dispatcher_pass_age_seconds',
    help: "Time since the last whole pass of this process's dispatcher.",
    registers: [registry],
    collect() {
      this.set(dispatcher.passAgeMs / 1000)
    },
  })
}

export class OperationMetrics {
  readonly #ended: Counter<'kind' | 'state'>
  readonly #provision: Histogram

  constructor(registry: Registry) {
    const registers = [registry]
    this.#ended = new Counter({
      name: 'berth_operation_attempts_total',
      help: 'Attempts of operations that this worker ended, by the state in which they left the operation; `queued` waits for another attempt.',
      labelNames: ['kind', 'state'],
      registers,
    })
    // Prometheus treats a first value as the start of counting: without a zero, it would miss the first failure.
    for (const kind of OPERATION_KINDS)
      for (const state of ['succeeded', 'failed'] as const) this.#ended.inc({ kind, state }, 0)
    this.#provision = new Histogram({
      name: 'berth_provision_seconds',
      help: 'Time from the first attempt to bring a new agent up until it was up.',
      buckets: [1, 2, 5, 10, 20, 30, 60, 120, 300, 600],
      registers,
    })
  }

  /** @param seconds time since the operation's first attempt began. */
  ended(kind: OperationKind, state: OperationState, seconds: number): void {
    this.#ended.inc({ kind, state })
    if (kind === 'agent.provision' && state === 'succeeded') this.#provision.observe(seconds)
  }
}
