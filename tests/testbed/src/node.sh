# The init of a node: process 1 of its own PID and mount namespaces, started in the node's folder. When it ends, however,
# the kernel ends containerd, the kubelet, the shims and all containers, and every mount made here is gone with them.
set -eu
# The node's root of control groups is a group of the bed's, in each hierarchy (cgroup v1): the groups of its containers
# lie there, and go with the bed. A namespace makes it the root also in what /proc says.
if [ -n "${CGROUP:-}" ]; then
  for top in /sys/fs/cgroup/*/; do
    [ -f "$top/cgroup.procs" ] || continue
    group=$top
    for name in $(echo "$CGROUP" | tr / ' '); do
      group=$group$name/
      mkdir -p "$group"
      # A new cpuset has no processors and no memory, and takes no process.
      for what in cpus mems; do
        [ ! -f "$group/cpuset.$what" ] || cat "$group/../cpuset.$what" >"$group/cpuset.$what"
      done
    done
    echo $$ >"$group/cgroup.procs"
    mount --bind "$group" "$top"
  done
  CGROUP='' exec unshare --cgroup -- dash "$0" "$@"
fi
# What these programs keep in places of their own choice stays in here: sockets of shims and names of pods' networks
# in /run, links to logs in /var/log, the cache of CNI in /var/lib.
mount -t tmpfs node-run /run
mount -t tmpfs node-log /var/log
mkdir -p overlay/upper overlay/work
mount -t overlay -o lowerdir=/var/lib,upperdir="$PWD/overlay/upper",workdir="$PWD/overlay/work" node-lib /var/lib
containerd -c containerd.toml >>containerd.log 2>&1 &
until ctr -a containerd.sock version >/dev/null 2>&1; do
  kill -0 $! || { echo "containerd has ended"; tail -20 containerd.log; exit 1; }
  sleep 0.05
done
echo "containerd is ready"
"$KUBELET" "$@" &
kubelet=$!
# As process 1 it also takes in the orphans. If the kubelet ends, so does the node.
while kill -0 $kubelet 2>/dev/null; do wait $kubelet || true; done
echo "the kubelet has ended"
