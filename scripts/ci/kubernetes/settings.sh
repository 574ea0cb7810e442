# Sourced by the other scripts: the paths and addresses of a test cluster. Several can run at once, each with a different
# number from 0 to 9 in BERTH_TEST_CLUSTER.
version=1.34.4
number=${BERTH_TEST_CLUSTER:-0}
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
# A change of the sources gives new programs.
home=$cache/kubernetes-$version-$(cd "$here" && cat build.sh image.sh pause.c kubernetes/* parts/* | sha256sum | cut -c 1-10)
bin=$home/bin
# Everything that a running cluster writes; each start empties it.
run=$cache/kubernetes-$number
name=berth-k8s-$number
# The node, and this machine's end of the veth link to it; ../own-docker.sh uses 172.31.249.
node_address=172.31.$((230 + number)).2
machine_address=172.31.$((230 + number)).1
pods=10.$((230 + number)).0.0/16
# The pod addresses of its one node, enough for its limit of 600 pods.
node_pods=${pods%/*}/22
services=10.$((210 + number)).0
export KUBECONFIG="$run/kubeconfig" PATH="$bin:$PATH"
