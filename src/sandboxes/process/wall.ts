/**
 * Isolates agents that run as Berth's own user: namespaces of user, mounts, processes and IPC, created by unshare(1) of
 * util-linux. Inside, an agent sees the system's programs, the parts of Berth that it needs (read-only), its home, and
 * no other process. It shares the network: its gateway listens on loopback.
 */
import { mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Where a system's programs are: an ordinary user's PATH may lack some of these folders. */
export const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** An agent's view of the machine, apart from its system folders. */
interface View {
  /** An empty folder, on which the agent's root is mounted. */
  root: string
  home: string
  temporary: string
  /** Folders that it must not see, even if they are below a system folder. */
  hidden: string[]
  /** Files and folders that it may read. */
  readOnly: string[]
}

/** Runs a program to its end, forwards SIGTERM to it, and reaps processes that it leaves behind. */
const ATTEND = `trap 'kill -TERM "$child" 2>/dev/null' TERM
"$@" & child=$!
while :; do wait "$child"; code=$?; kill -0 "$child" 2>/dev/null || exit "$code"; done`

/**
 * Builds the agent's root, as "root" of a user namespace, and enters another one without any rights in the first, so
 * that the mounts cannot be changed. Mounts are found by path, so that mounts below a system folder become read-only
 * too.
 */
const ENTER = `set -eu
attend=$1 uid=$2 gid=$3 root=$4 home=$5 temporary=$6 hidden=$7 readonly=$8
shift 8
mount -t tmpfs -o mode=755 tmpfs "$root"
for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /nix /gnu; do
  if [ -L "$path" ]; then ln -s "$(readlink "$path")" "$root$path"
  elif [ -d "$path" ]; then mkdir "$root$path"; mount --rbind "$path" "$root$path"; fi
done
mkdir "$root/tmp" "$root/proc" "$root/dev" "$root/.old"
mount -t tmpfs -o mode=1777,size=512m tmpfs "$root/tmp"
IFS='
'
for path in $hidden; do
  if [ -d "$root$path" ]; then mount -t tmpfs -o mode=755 tmpfs "$root$path"; fi
done
for path in $readonly; do
  if [ -d "$path" ]; then mkdir -p "$root$path"
  elif [ ! -e "$root$path" ]; then mkdir -p "$root\${path%/*}"; : >"$root$path"; fi
  mount --rbind "$path" "$root$path"
done
mkdir -p "$root$home" "$root$temporary"
IFS=' '
while read -r _ _ _ _ path _; do
  path=$(printf %b "$path")
  case $path in
    "$root/tmp") ;;
    "$root"/*) mount -o remount,bind,ro "$path" ;;
  esac
done </proc/self/mountinfo
for path in "$home" "$temporary"; do mount --rbind "$path" "$root$path"; done
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
for name in null zero full random urandom tty; do
  : >"$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for name in 0:stdin 1:stdout 2:stderr; do ln -s "fd/\${name%:*}" "$root/dev/\${name#*:}"; done
mount -o remount,bind,ro "$root"
cd "$root"
pivot_root . .old
umount -l /.old
# Again by its path: from the folder that it was before, .. leads into the old root.
cd "$home"
exec unshare --user --map-user="$uid" --map-group="$gid" setpriv --no-new-privs /bin/sh -c "$attend" sh "$@"`

/**
 * The command line that runs a program inside the wall. Its first process forwards SIGTERM, and ends with the program.
 */
export function withinWall(view: View, program: string[]): string[] {
  const { root, home, temporary, hidden, readOnly } = view
  const ids = [process.getuid?.(), process.getgid?.()].map(String)
  const places = [root, home, temporary, hidden.join('\n'), readOnly.join('\n')]
  return [
    ...['unshare', '--user', '--map-root-user', '--mount', '--ipc', '--pid', '/bin/sh', '-c', ATTEND, 'sh'],
    ...['/bin/sh', '-c', ENTER, 'sh', ATTEND, ...ids, ...places, ...program],
  ]
}

/** The part of a view that all agents of a folder share. */
export type CommonView = Pick<View, 'root' | 'hidden' | 'readOnly'>

export async function commonView(options: {
  agentsDir: string
  dataDir: string
  node: string
  agentd: string
}): Promise<CommonView> {
  const { agentsDir, dataDir, node, agentd } = options
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  await mkdir(join(agentsDir, '.root'), { recursive: true, mode: 0o700 })
  // Mounts are listed by their real paths.
  const root = await realpath(join(agentsDir, '.root'))
  const bin = dirname(node)
  const wanted = [bin, join(bin, '../lib/node_modules'), dirname(agentd), '/etc/resolv.conf']
  const there = await Promise.all(wanted.map((path) => realpath(path).catch(() => [])))
  const readOnly = new Set([dirname(agentd), ...there.flat()])
  return { root, hidden: [dataDir, await realpath(dataDir)], readOnly: [...readOnly] }
}
