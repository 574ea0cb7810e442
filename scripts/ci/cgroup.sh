#!/bin/sh
# Creates the cgroup of a CI container engine, with the weight of four processes: cgroup.sh NAME. Otherwise all of the
# engine's containers together would have the weight of a single process.
set -eu
# Version 1 has a tree for each controller.
trees=/sys/fs/cgroup
[ -e $trees/cgroup.controllers ] || trees=$(ls -d $trees/*/)
for tree in $trees; do
  mkdir -p "$tree/$1"
  [ ! -e "$tree/$1/cpu.shares" ] || echo 4096 >"$tree/$1/cpu.shares"
  [ ! -e "$tree/$1/cpu.weight" ] || echo 400 >"$tree/$1/cpu.weight"
done
