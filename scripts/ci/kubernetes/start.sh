#!/bin/sh
# Starts a cluster of one node, as root, and prints the path of its kubeconfig as the last line when pods can be made:
# KUBECONFIG=$(scripts/ci/kubernetes/start.sh | tail -n 1)
set -eu
. "$(dirname "$0")/settings.sh"
"$here/build.sh" >/dev/null
"$here/stop.sh"
mkdir -p "$run/keys" "$run/log"
cd "$run/keys"

elliptic='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
# certificate NAME SUBJECT USE [NAMES]
certificate() {
  openssl req $elliptic -subj "$2" -keyout "$1.key" -out "$1.csr"
  printf 'extendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile "$1.ext" -out "$1.crt"
}
# Each program has its own token: kubeconfig FILE USER [GROUP]
kubeconfig() {
  token=$(openssl rand -hex 16)
  echo "$token,$2,$2,\"${3:-}\"" >>tokens.csv
  cat >"$1" <<YAML
apiVersion: v1
kind: Config
current-context: $name
clusters: [{name: $name, cluster: {server: "https://$node_address:6443", certificate-authority-data: $(base64 -w 0 ca.crt)}}]
users: [{name: $name, user: {token: $token}}]
contexts: [{name: $name, context: {cluster: $name, user: $name}}]
YAML
}
umask 077
{
  openssl req -x509 $elliptic -days 3650 -subj "/CN=$name" -keyout ca.key -out ca.crt
  certificate api-server /CN=kube-apiserver serverAuth \
    "IP:$node_address,IP:127.0.0.1,IP:$services.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
  certificate to-kubelet /O=system:masters/CN=kube-apiserver clientAuth
  certificate kubelet /CN=node serverAuth "IP:$node_address,DNS:node"
  openssl genrsa -out accounts.key 2048
} 2>"$run/log/openssl"
kubeconfig "$KUBECONFIG" admin system:masters
kubeconfig kubelet.conf system:node:node system:nodes
kubeconfig controllers.conf system:kube-controller-manager
kubeconfig scheduler.conf system:kube-scheduler
kubeconfig proxy.conf system:kube-proxy
umask 022

"$here/../cgroup.sh" "$name"
# The pods' limits are in the node's cgroup; its programs stay in the cgroup of the process that starts them.
setsid unshare --net --mount --pid --fork --mount-proc --kill-child "$here/node.sh" >"$run/log/node" 2>&1 </dev/null &
parent=$!
until init=$(pgrep -P $parent); do
  kill -0 $parent || { cat "$run/log/node" >&2; exit 1; }
  sleep 0.05
done
echo "$init" >"$run/init"
ip link add "$name" type veth peer name eth0 netns "$init"
ip addr add "$machine_address/30" dev "$name"
ip link set "$name" up
ip route add "$pods" via "$node_address"
ip route add "$services.0/24" via "$node_address"

# At most two minutes each: wait_for COMMAND…
wait_for() {
  tries=0
  until "$@" >"$run/log/wait" 2>&1; do
    tries=$((tries + 1))
    if [ $tries -ge 600 ] || ! kill -0 "$init"; then
      cat "$run/log/wait" >&2
      echo "The node is not ready; its programs say why in $run/log" >&2
      exit 1
    fi
    sleep 0.2
  done
}
# No pod can be made before the account that it runs as.
usable() {
  kubectl get --raw /readyz && kubectl wait --for=condition=Ready node/node --timeout=5s \
    && kubectl get serviceaccount default
}
wait_for usable
sed "s/SERVICES/$services/" "$here/objects.yaml" | kubectl apply -f - >&2
wait_for kubectl -n kube-system rollout status deployment/coredns --timeout=10s
echo "$KUBECONFIG"
