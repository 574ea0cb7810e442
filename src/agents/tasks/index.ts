/** The parts of tasks that workers use. */
export { Tasks } from './jobs.ts'
export { newTask } from './task-schema.ts'
