import { runGroup } from './group.ts'

await runGroup(import.meta.filename)
