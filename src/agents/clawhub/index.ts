/** The parts of the hub of skills that workers use. */
export { bundledSkills } from './folders.ts'
export { installMissing } from './install.ts'
