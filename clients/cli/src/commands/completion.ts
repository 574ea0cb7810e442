import { command } from '../command.ts'
import { UsageError } from '../errors.ts'
import { SCRIPTS, SHELLS } from '../shells.ts'

export const completionCommands = [
  command({
    name: 'completion',
    summary: 'print a script that completes commands in bash, zsh or fish',
    usage: '<shell>',
    more: `  bash:  berth completion bash > ~/.local/share/bash-completion/completions/berth
  zsh:   berth completion zsh > "\${fpath[1]}/_berth"
  fish:  berth completion fish > ~/.config/fish/completions/berth.fish`,
    async run({ args: [name] }) {
      const shell = SHELLS.find((one) => one === name)
      if (!shell) throw new UsageError(`${name} is none of ${SHELLS.join(', ')}`)
      return { data: SCRIPTS[shell], text: SCRIPTS[shell].trimEnd() }
    },
  }),
]
