#!/bin/bash
# The job of the virtual machine, as root: install dra-testbed, run it, check what it left. The machine's first process starts this.
# The output goes to the second serial port; the results go to the third disk at the end, as a tar file.
set -u
export HOME=/root LANG=C.UTF-8 PATH=/root/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DRA_TESTBED_CACHE=/job/cache
chown root:root /job/cache && chmod go-w /job/cache # it has the owner that it had on the host
results=/root/results

facts() {
  echo "kernel: $(uname -r), Debian $(cat /etc/debian_version), Python $(python3 -c 'import platform; print(platform.python_version())')"
  echo "first process: $(cat /proc/1/comm), systemd: $([ -d /run/systemd/system ] && echo yes || echo no)"
  echo "/sys/fs/cgroup: $(stat -f -c %T /sys/fs/cgroup), $(nproc) processors, $(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo) MiB"
  echo "overlay in /proc/filesystems: $(grep -qw overlay /proc/filesystems && echo yes || echo "not yet")"
  cgroups before
}

cgroups() {
  for file in controllers subtree_control; do
    echo "cgroup.$file $1: $(cat /sys/fs/cgroup/cgroup.$file 2>&1)"
  done
}

failures_of() {
  tail --pid="$1" --lines=+1 --follow=name --retry "$results/report/events.jsonl" 2>/dev/null |
    grep --line-buffered -E '"verdict": "(fail|error|timeout|blocked|flaky)"'
}

job() {
  mapfile -d '' -t words </job/words
  echo "== the machine, up for $(cut -d ' ' -f 1 /proc/uptime) s"
  facts
  echo "== install"
  python3 -m venv /root/venv || return
  pip install --quiet --no-compile --no-index --find-links /job/wheels dra-testbed || return
  echo "== dra-testbed doctor"
  dra-testbed doctor
  echo "== dra-testbed run --provider local --patience 10 ${words[*]}"
  python3 /job/host_snapshot.py snapshot /root/before
  dra-testbed run --provider local --patience 10 --report "$results/report" "${words[@]}" &
  failures_of $! # failures are printed at once; the report is written at the end
  wait $!
  echo "exit $?" >"$results/status"
  cp -a "$HOME/.local/state/dra-testbed/.failed" "$results/failed" 2>/dev/null # the logs of a failed bring-up
  echo "== left behind"
  python3 /job/host_snapshot.py compare /root/before && echo nothing
  cgroups after
  echo "== the machine ends, up for $(cut -d ' ' -f 1 /proc/uptime) s"
}

mkdir -p "$results"
stty -F /dev/ttyS1 raw -echo
job 2>&1 | cat >/dev/ttyS1 # through a pipe, so that progress is not drawn as on a terminal
tar --create --file /dev/vdc --directory "$results" .
sync
echo o >/proc/sysrq-trigger
sleep infinity
