#!/bin/sh
# Packs a folder as an image of one layer, for load.sh, on standard output; needs neither a registry nor a builder:
# image.sh <name:tag> <folder> [<entrypoint> [<uid>]]
set -eu

name=$1 folder=$2 entrypoint=${3:+"\"Entrypoint\":[\"$3\"],"} user=${4:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The same folder gives the same image.
tar -C "$folder" --numeric-owner --owner=0 --group=0 --sort=name --mtime=@0 -cf "$work/layer.tar" .
layer=$(sha256sum <"$work/layer.tar" | cut -d ' ' -f 1)
cat >"$work/config.json" <<JSON
{"architecture": "$(dpkg --print-architecture)", "os": "linux", "rootfs": {"type": "layers", "diff_ids": ["sha256:$layer"]},
 "config": {$entrypoint "User": "$user", "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}}
JSON
echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$name\"], \"Layers\": [\"layer.tar\"]}]" >"$work/manifest.json"
tar -C "$work" -cf - manifest.json config.json layer.tar
