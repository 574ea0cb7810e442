/** The parts of forks that workers use. */
export { type EngineState, readEngineState, saveEngineState } from './engine-state.ts'
export { handOver } from './hand-over.ts'
