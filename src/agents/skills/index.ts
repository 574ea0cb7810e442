/** The parts of skills that workers use. */
export { attachedSkills, attachSkills } from './attach.ts'
export { readSkill } from './content.ts'
export type { SkillFile } from './files.ts'
export { readSkillFolders, SKILL_CONFLICT } from './skill-folders.ts'
export { BadSkill } from './skill-md.ts'
export type { Resolution } from './skill-schema.ts'
