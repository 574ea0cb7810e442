#!/bin/sh
# Makes the cgroup of a container engine of CI, and gives it the weight of four processes: without it all of the
# engine's containers together have the weight of one of the processes beside them. cgroup.sh NAME
set -eu
# Version 1 has a tree for each controller.
trees=/sys/fs/cgroup
[ -e $trees/cgroup.controllers ] || trees=$(ls -d $trees/*/)
for tree in $trees; do
  mkdir -p "$tree/$1"
  [ ! -e "$tree/$1/cpu.shares" ] || echo 4096 >"$tree/$1/cpu.shares"
  [ ! -e "$tree/$1/cpu.weight" ] || echo 400 >"$tree/$1/cpu.weight"
done
