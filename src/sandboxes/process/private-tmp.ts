/**
 * A private /tmp in memory for each agent if Berth runs as root: the machine's /tmp may be closed to the agents' user,
 * and is shared with all other programs. It needs a mount namespace, created with unshare(1) and setpriv(1) of
 * util-linux if the kernel allows it. Agents of an unprivileged Berth have a private /tmp behind their wall
 * (`wall.ts`).
 */
import type { RunAs } from '../../lib/process/system-user.ts'

/** Mounts it as root, with what the agent needs below /tmp, and continues as the agents' user. */
const ENTER = `set -eu
stage=$1 home=$2 uid=$3 gid=$4 needed=$5
shift 5
mask=$(umask)
umask 022
mount -t tmpfs -o mode=1777,size=512m,nosuid,nodev tmpfs "$stage"
before=$IFS
IFS='
'
for given in $needed; do
  for path in "$given" "$(readlink -f "$given")"; do
    case $path in /tmp/*) ;; *) continue ;; esac
    place=$stage\${path#/tmp}
    if [ -d "$path" ]; then mkdir -p "$place"
    else mkdir -p "\${place%/*}"; [ -e "$place" ] || : >"$place"; fi
    mount --rbind "$path" "$place"
  done
done
IFS=$before
mount --move "$stage" /tmp
umask "$mask"
cd "$home"
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"`

/**
 * The command line with which root starts a program as the agents' user. It becomes the program, in the same process.
 */
export function withPrivateTmp(
  view: { stage: string; home: string; user: RunAs; needed: string[] },
  program: string[],
): string[] {
  const { stage, home, user, needed } = view
  const places = [stage, home, String(user.uid), String(user.gid), needed.join('\n')]
  return [
    ...['unshare', '--mount', '--propagation', 'slave', '/bin/sh', '-c', ENTER, 'sh'],
    ...places,
    ...program,
  ]
}
