#!/bin/sh
# First process of a machine without a file system of its own (the control plane): says that it is there, then reaps orphans.
set -eu
echo done >"$1/booted"
trap 'exit 0' TERM
while :; do
  sleep 2147483647 &
  wait $! || true
done
