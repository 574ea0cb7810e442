# Sourced by the other scripts: where a cluster of tests lies. Several can run side by side, each with a number of its
# own from 0 to 9 in BERTH_TEST_CLUSTER.
version=1.34.4
number=${BERTH_TEST_CLUSTER:-0}
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
# A change of the sources makes new programs.
home=$cache/kubernetes-$version-$(cd "$here" && cat build.sh image.sh pause.c kubernetes/* parts/* | sha256sum | cut -c 1-10)
bin=$home/bin
# All that a running cluster writes; emptied by each start.
run=$cache/kubernetes-$number
name=berth-k8s-$number
# The node, and this machine's end of the cable to it; 172.31.249 is of ../own-docker.sh.
node_address=172.31.$((230 + number)).2
machine_address=172.31.$((230 + number)).1
pods=10.$((230 + number)).0.0/16
# Those of its one node, enough for the 600 pods that it takes.
node_pods=${pods%/*}/22
services=10.$((210 + number)).0
export KUBECONFIG="$run/kubeconfig" PATH="$bin:$PATH"
