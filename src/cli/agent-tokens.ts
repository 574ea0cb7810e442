/** `berth keys rotate-agent-tokens`. It prints no token: clients read theirs from the API. */
import { findWorkspace } from '../accounts/workspaces.ts'
import { countAgents, rotateGatewayTokens } from '../agents/tokens/token-rotation.ts'
import { withDatabase } from './database.ts'

/** Agents between two lines of progress. */
const STEP = 100

interface Options {
  workspace?: string
  agent?: string
  resume?: Date
}

export function rotateAgentTokens({ workspace, agent, resume }: Options): Promise<void> {
  return withDatabase(async ({ prisma }) => {
    const begun = resume ?? new Date()
    const workspaceId = workspace && (await findWorkspace(prisma, workspace)).id
    const rotation = { begun, workspaceId, agentId: agent }
    const of = await countAgents(prisma, rotation)
    if (of === 0) return console.log('there are no such agents')
    console.log(`to go on after an interruption, add --resume ${begun.toISOString()}`)
    const done = await rotateGatewayTokens(prisma, rotation, (done) => {
      if (done % STEP === 0 && done < of) console.log(`${done} of ${of}`)
    })
    console.log(`${done} of ${of} agents have new tokens, and restart`)
  })
}
