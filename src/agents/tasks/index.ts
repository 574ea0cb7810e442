/** The parts of tasks that other code uses. */
export { Tasks } from './jobs.ts'
export { type Job, job, newTask } from './task-schema.ts'
