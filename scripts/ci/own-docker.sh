#!/usr/bin/env bash
# A separate machine for a Docker engine, as far as Linux namespaces allow: network, processes, and /run with its socket.
# Programs there are isolated from the ports, containers, bridges and firewall rules of this machine. The engine restarts
# whenever it dies, as with an init system. Its images stay, in a cache outside the checkout.
#
#   own-docker.sh start       starts it, or finds it running; returns when it answers
#   own-docker.sh run CMD…    runs a command in there
#   own-docker.sh stop        kills everything in there
set -euo pipefail

name=berth-ci
data=${XDG_CACHE_HOME:-$HOME/.cache}/berth/docker
state=/run/$name
# The pid of its first process, which is 1 inside.
init=$state/init.pid
# The two ends of the veth link between here and there.
here=172.31.249.1 there=172.31.249.2

is_running() { [ -s "$init" ] && kill -0 "$(cat "$init")" 2>/dev/null; }
inside() { nsenter --target "$(cat "$init")" --net --mount --pid --wdns="$PWD" -- "$@"; }
answers() { is_running && inside curl -fs --max-time 5 -o /dev/null --unix-socket /run/docker.sock http://docker/_ping; }

# With internet access, because image builds install packages.
connect() {
  ip netns add $name
  ip link add $name type veth peer name uplink netns $name
  ip address add $here/30 dev $name
  ip link set $name up
  ip -n $name address add $there/30 dev uplink
  ip -n $name link set uplink up
  ip -n $name link set lo up
  ip -n $name route add default via $here
  sysctl -qw net.ipv4.ip_forward=1
  iptables -t nat -I POSTROUTING -s $there ! -o $name -j MASQUERADE
  iptables -I FORWARD -i $name -j ACCEPT
  iptables -I FORWARD -o $name -j ACCEPT
}

disconnect() {
  iptables -t nat -D POSTROUTING -s $there ! -o $name -j MASQUERADE
  iptables -D FORWARD -i $name -j ACCEPT
  iptables -D FORWARD -o $name -j ACCEPT
  ip link delete $name
  ip netns delete $name
} 2>/dev/null

# Runs as the first process inside.
serve() {
  mount -t tmpfs tmpfs /run
  while true; do
    dockerd --data-root "$1" --cgroup-parent /$name --log-level warn || true
    sleep 0.5
  done
}

start() {
  if answers; then return; fi
  stop
  if ! { command -v ip && command -v pgrep && command -v sysctl; } >/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends iproute2 procps >&2
  fi
  mkdir -p "$data" $state
  "${BASH_SOURCE%/*}/cgroup.sh" $name
  connect
  setsid nsenter --net=/run/netns/$name unshare --mount --pid --fork --kill-child --mount-proc \
    bash -c "name=$name; $(declare -f serve); serve '$data'" >$state/dockerd.log 2>&1 </dev/null &
  for _ in $(seq 300); do
    pgrep --parent $! >$init || true
    if answers; then return; fi
    sleep 0.2
  done
  tail -n 30 $state/dockerd.log >&2
  return 1
}

stop() {
  if is_running; then
    # The kernel kills all other processes inside with the first one.
    kill -KILL "$(cat "$init")"
    while is_running; do sleep 0.1; done
  fi
  disconnect || true
  rm -rf $state
  find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null || true
}

case ${1:-} in
  start | stop) "$1" ;;
  run) inside "${@:2}" ;;
  *)
    echo 'usage: own-docker.sh start | run COMMAND… | stop' >&2
    exit 64
    ;;
esac
