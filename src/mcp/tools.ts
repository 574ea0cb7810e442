/** All tools of `/mcp`, in the order in which clients see them. */
import type { Tool } from './tool.ts'
import { agentFileTools } from './tools/agent-files.ts'
import { agentTools } from './tools/agents.ts'
import { conversationTools } from './tools/conversation.ts'
import { fileTools } from './tools/files.ts'
import { operationTools } from './tools/operations.ts'

export const tools: readonly Tool[] = [
  ...agentTools,
  ...conversationTools,
  ...agentFileTools,
  ...fileTools,
  ...operationTools,
]
