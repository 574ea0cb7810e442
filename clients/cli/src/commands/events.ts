import { command } from '../command.ts'
import { followEvents, type WorkspaceEvent } from '../events.ts'
import { harmless, paint } from '../terminal.ts'

export const eventCommands = [
  command({
    name: 'events',
    summary: 'print what changes in the workspace, as it happens',
    options: { type: { about: 'only this type, or a group of types: file.*', value: 'type', many: true } },
    async run({ berth, options, json, signal }) {
      const onConnection = (isOpen: boolean) => {
        if (!isOpen) console.error(paint('dim', 'the connection was lost; trying again', process.stderr))
      }
      for await (const { event, body } of followEvents(berth, { types: options.type, signal, onConnection }))
        console.log(json ? body : eventText(event))
    },
  }),
]

/** One event in a line. */
export function eventText({ type, createdAt, resource, data }: WorkspaceEvent): string {
  const name = [data.name, data.step, data.statusReason, data.error].filter(Boolean).join(' · ')
  const time = process.stdout.isTTY
    ? new Date(createdAt).toLocaleTimeString()
    : new Date(createdAt).toISOString()
  return `${paint('dim', time)} ${paint('bold', type)} ${harmless(`${resource.id} ${name}`)}`.trimEnd()
}
