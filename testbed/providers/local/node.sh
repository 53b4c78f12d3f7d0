#!/bin/sh
# First process of a node: makes a root file system of its own, where every path is the standard one, moves into it, then reaps orphans.
#
#   node.sh FOLDER NAME overlay|copy
#
# FOLDER/upper     what this node has on top of the host's files (with `overlay`: its writable layer)
# FOLDER/disk.paths  what must lie on a real file system (/var/lib/kubelet ...): FOLDER/disk/PATH, bound to the same path
# FOLDER/programs  lines "source target": upstream programs, bound read-only
# FOLDER/booted    is not empty any more once the node is complete
set -eu
folder=$1 name=$2 how=$3
root=$folder/root
exec 3>>"$folder/booted"
mkdir -p "$root"
mount --make-rprivate /

# layer LOWER NAME TARGET: the node's writable layer over a part of the host. "volatile" because nothing here outlives the testbed, and
# without it the end of each node writes the whole disk's caches out first; older kernels do not know the word.
layer() {
  rm -rf "$folder/work$2/work/incompat"
  mkdir -p "$folder/work$2" "$folder/upper/$2"
  layers=lowerdir=$1,upperdir=$folder/upper/$2,workdir=$folder/work$2
  mount -t overlay node -o "$layers,volatile" "$3" 2>/dev/null || mount -t overlay node -o "$layers" "$3"
}

if [ "$how" = overlay ]; then
  layer / "" "$root"
  # A file system that the host mounts below / is not part of the lower layer: the ones that hold programs get a layer of their own.
  for part in usr etc opt; do
    if mountpoint -q "/$part"; then
      layer "/$part" "$part" "$root/$part"
    fi
  done
else
  # No overlay here: the host's programs are bound read-only, /etc is copied, everything else starts empty, /usr/local too.
  mount -t tmpfs -o mode=755 node "$root"
  for part in /usr /bin /sbin /lib*; do
    if [ -L "$part" ]; then
      cp -a "$part" "$root$part"
    elif [ -d "$part" ]; then
      mkdir "$root$part"
      mount --bind "$part" "$root$part"
      mount -o remount,bind,ro "$root$part"
    fi
  done
  mount -t tmpfs -o mode=755 local "$root/usr/local"
  cp -a /etc "$root/etc"
  cp -a "$folder/upper/." "$root/"
fi

mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/var" "$root/root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
[ -e "$root/var/run" ] || ln -s ../run "$root/var/run"

while read -r path; do
  mkdir -p "$folder/disk$path" "$root$path"
  mount --bind "$folder/disk$path" "$root$path"
done <"$folder/disk.paths"

while read -r source target; do
  mkdir -p "$root${target%/*}"
  [ -e "$root$target" ] || : >"$root$target"
  mount --bind "$source" "$root$target"
  mount -o remount,bind,ro "$root$target"
done <"$folder/programs"

hostname "$name"
cd "$root"
mkdir -p .host
pivot_root . .host
mount --make-rshared /
umount -l /.host
rmdir /.host 2>/dev/null || true
echo done >&3
exec 3>&-

trap 'exit 0' TERM
while :; do
  sleep 2147483647 &
  wait $! || true
done
