#!/bin/sh
# First process of a node: creates the node's root file system, where all paths are the standard ones, pivots into it, then reaps orphans.
#
#   node.sh FOLDER NAME overlay|copy
#
# FOLDER/files       the node's initial files, on top of the host's files
# FOLDER/disk.paths  paths that need a real file system (/var/lib/kubelet ...): FOLDER/disk/PATH is bind-mounted to each PATH
# FOLDER/programs    lines "source target": upstream programs, or folders of them, which are bind-mounted read-only
# FOLDER/prepared    exists after the first boot
# FOLDER/booted      is empty until the node is complete
set -eu
folder=$1 name=$2 how=$3
root=$folder/root
exec 3>>"$folder/booted"
mkdir -p "$root"
mount --make-rprivate /

# layer LOWER NAME TARGET: mounts the node's writable layer over a folder of the host. "volatile", because nothing outlives the testbed and
# each unmount would sync the whole disk otherwise; older kernels do not know the option.
layer() {
  rm -rf "$folder/work$2/work/incompat"
  mkdir -p "$folder/work$2" "$folder/upper/$2"
  layers=lowerdir=$1,upperdir=$folder/upper/$2,workdir=$folder/work$2
  mount -t overlay node -o "$layers,volatile" "$3" 2>/dev/null || mount -t overlay node -o "$layers" "$3"
}

if [ "$how" = overlay ]; then
  layer / "" "$root"
  # The lower layer does not contain file systems that the host mounts below /. Those with programs get their own layer.
  for part in usr etc opt; do
    if mountpoint -q "/$part"; then
      layer "/$part" "$part" "$root/$part"
    fi
  done
else
  # Without overlays, the host's programs are bind-mounted read-only, /etc is copied once, and the rest starts empty, also /usr/local.
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
  [ -e "$folder/prepared" ] || { mkdir -p "$folder/disk" && cp -a /etc "$folder/disk/etc"; }
  for part in etc opt var usr/local; do
    mkdir -p "$folder/disk/$part" "$root/$part"
    mount --bind "$folder/disk/$part" "$root/$part"
  done
fi

mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/var" "$root/root"
if [ ! -e "$folder/prepared" ]; then
  # The host may be a Kubernetes node itself; its pod networks, CDI files and runtime plugins must not appear in this node.
  rm -rf "$root/etc/cni" "$root/opt/cni" "$root/etc/cdi" "$root/etc/nri" "$root/opt/nri"
  cp -a --remove-destination "$folder/files/." "$root/"
  : >"$folder/prepared"
fi

mount -t proc proc "$root/proc"
# A kubelet sets these for the whole machine, which is the host. Here it finds its values already set, and writes nothing.
mkdir -p "$folder/sysctl"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=$root/proc/sys/${setting%=*} shown=$folder/sysctl/$(echo "${setting%=*}" | tr / .)
  if [ -e "$file" ]; then
    echo "${setting#*=}" >"$shown"
    mount --bind "$shown" "$file"
  fi
done

# Each boot has its own ID. A program that compares it must see that the node rebooted, although the host did not.
boot_id=$root/proc/sys/kernel/random/boot_id
cat "$root/proc/sys/kernel/random/uuid" >"$folder/sysctl/kernel.random.boot_id"
mount --bind "$folder/sysctl/kernel.random.boot_id" "$boot_id"
mount -o remount,bind,ro "$boot_id"

mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"

# The node has its own /dev, so that devices that a driver creates stay in the node. It has copies of the host's devices, but not of those
# that read or write disks or memory.
mount -t tmpfs -o mode=755 dev "$root/dev"
set --
for device in /dev/*; do
  case $device in
    /dev/pts | /dev/shm | /dev/mqueue | /dev/hugepages | /dev/ptmx | /dev/log | /dev/console) ;;
    /dev/block | /dev/bsg | /dev/disk | /dev/loop-control | /dev/mapper | /dev/mem | /dev/ng[0-9]* | /dev/nvme* | /dev/port | /dev/sg[0-9]*) ;;
    *) set -- "$@" "$device" ;;
  esac
done
cp -a "$@" "$root/dev/" 2>/dev/null || true # in one call, because an ordinary host has 200; one may disappear meanwhile
find "$root/dev" -type b -exec rm -f {} +
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue" 2>/dev/null || true # not every kernel has mqueue

mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
[ -e "$root/var/run" ] || ln -s ../run "$root/var/run"

while read -r path; do
  mkdir -p "$folder/disk$path" "$root$path"
  mount --bind "$folder/disk$path" "$root$path"
done <"$folder/disk.paths"

while read -r source target; do
  mkdir -p "$root${target%/*}"
  if [ -d "$source" ]; then mkdir -p "$root$target"; else [ -e "$root$target" ] || : >"$root$target"; fi
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
