/** What workers use of the hub of skills. */
export { bundledSkills } from './folders.ts'
export { installMissing } from './install.ts'
