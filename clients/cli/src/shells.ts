/** Scripts with which shells ask `berth __complete`. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const

/** A script for the shell, which completes file names where the table has no words. */
export const SCRIPTS: Record<(typeof SHELLS)[number], string> = {
  bash: `_berth() {
  local line words=()
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do words+=("$line"); done < <(berth __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("\${words[@]}")
}
complete -o default -F _berth berth
`,
  zsh: `#compdef berth
_berth() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    found+=("\${word//:/\\\\:}\${about:+:$about}")
  done < <(berth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe berth found; else _files; fi
}
if [ "\${funcstack[1]}" = "_berth" ]; then _berth "$@"; else compdef _berth berth; fi
`,
  fish: `function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  berth __complete -- $words[2..-1] 2>/dev/null
end
complete -c berth -f -n 'test (count (__berth_complete)) -gt 0' -a '(__berth_complete)'
`,
}
