/** Which skills are shown: stands in the address, but for those of the agent. */
export interface SkillsView {
  view?: 'library' | 'hub'
}

/** Reads the parameter; anybody may have written the address, so another value is dropped. */
export const readSkillsView = ({ view }: Record<string, unknown>): SkillsView =>
  view === 'library' || view === 'hub' ? { view } : {}
