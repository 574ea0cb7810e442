#!/bin/sh
# A peer of IPFS Cluster: BERTH_TEST_IPFS_CLUSTER=$(scripts/ci/ipfs-cluster.sh | tail -n 1)
exec "$(dirname "$0")/go-program.sh" github.com/ipfs-cluster/ipfs-cluster/cmd/ipfs-cluster-service v1.1.6
