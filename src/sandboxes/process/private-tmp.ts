/**
 * A /tmp of its own for each agent of root, in memory: the machine's may be closed to the agents' user, and is shared with
 * all other programs. It takes a mount namespace, which unshare(1) and setpriv(1) of util-linux make where the kernel lets
 * root do so. As Berth's own user, agents have one behind their wall (`wall.ts`).
 */
import type { RunAs } from '../../lib/process/system-user.ts'

/** Makes the mount as root, with what the agent needs below /tmp, and continues as the agents' user. */
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

/** The command line that root starts for a program of the agents' user. It ends as the program does, as the same process. */
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
