#!/bin/sh
# The node's first process, in namespaces that start.sh makes.
set -eu
. "$(dirname "$0")/settings.sh"
keys=$run/keys

# Files that its programs store in the usual places disappear with this mount namespace.
mount --make-rprivate /
mount --make-rshared /
mount -t tmpfs tmpfs /run
for folder in lib/kubelet lib/containerd lib/cni log/pods log/containers; do
  mkdir -p "$run/var/$folder" "/var/$folder"
  mount --bind "$run/var/$folder" "/var/$folder"
done
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip addr add "$node_address/30" dev eth0
ip link set eth0 up
ip route add default via "$machine_address"
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1

mkdir /run/cni
cat >/run/cni/10-bridge.conflist <<JSON
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$node_pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
# Without CAP_SYS_RESOURCE no process may be made less likely to be killed when memory runs out.
cat >/run/containerd.toml <<TOML
version = 2
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "berth.test/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/run/registries"
TOML
# A test's registry on this machine serves the images of all names.
mkdir -p /run/registries/_default
cat >/run/registries/_default/hosts.toml <<TOML
[host."http://$machine_address:5000"]
  capabilities = ["pull", "resolve"]
TOML
cat >/run/kubelet.yaml <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $node_address
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $keys/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $keys/kubelet.crt
tlsPrivateKeyFile: $keys/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: /$name
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
resolvConf: ""
clusterDomain: cluster.local
clusterDNS: [$services.10]
failSwapOn: false
# Other data on this machine is no reason to evict a pod.
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 100
maxPods: 600
YAML

# keep PROGRAM OPTION…: runs it, and restarts it when it has exited.
keep() {
  while :; do
    "$@" >>"$run/log/$1" 2>&1 || true
    sleep 0.2
  done &
}
keep containerd --config /run/containerd.toml
keep etcd --data-dir "$run/etcd" --unsafe-no-fsync --listen-peer-urls http://127.0.0.1:2380 \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379
keep kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address="$node_address" --advertise-address="$node_address" \
  --service-cluster-ip-range="$services.0/24" --allow-privileged=true \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
  --token-auth-file="$keys/tokens.csv" --client-ca-file="$keys/ca.crt" \
  --tls-cert-file="$keys/api-server.crt" --tls-private-key-file="$keys/api-server.key" \
  --kubelet-preferred-address-types=InternalIP \
  --kubelet-client-certificate="$keys/to-kubelet.crt" --kubelet-client-key="$keys/to-kubelet.key" \
  --service-account-key-file="$keys/accounts.key" --service-account-signing-key-file="$keys/accounts.key" \
  --service-account-issuer=https://kubernetes.default.svc
until ctr version >/dev/null 2>&1; do sleep 0.1; done
for archive in "$home"/images/*.tar; do ctr --namespace k8s.io images import "$archive"; done
until kubectl get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done
keep kube-controller-manager --kubeconfig="$keys/controllers.conf" --bind-address=127.0.0.1 --leader-elect=false \
  --service-account-private-key-file="$keys/accounts.key" --root-ca-file="$keys/ca.crt" \
  --use-service-account-credentials=true --allocate-node-cidrs=true --node-cidr-mask-size=22 --cluster-cidr="$pods" \
  --service-cluster-ip-range="$services.0/24"
keep kube-scheduler --kubeconfig="$keys/scheduler.conf" --bind-address=127.0.0.1 --leader-elect=false
keep kubelet --config=/run/kubelet.yaml --kubeconfig="$keys/kubelet.conf" --hostname-override=node --node-ip="$node_address"
keep kube-proxy --kubeconfig="$keys/proxy.conf" --proxy-mode=iptables --hostname-override=node --cluster-cidr="$pods" \
  --bind-address="$node_address" --conntrack-max-per-core=0 \
  --metrics-bind-address=127.0.0.1:10249 --healthz-bind-address=127.0.0.1:10256
keep netpol --kubeconfig="$KUBECONFIG" --hostname-override=node --service-cluster-ip-range="$services.0/24"
mkdir -p "$run/volumes"
keep volumes "$KUBECONFIG" "$run/volumes"
wait
