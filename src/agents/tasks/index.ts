/** What workers use of tasks. */
export { Tasks } from './jobs.ts'
export { newTask } from './task-schema.ts'
