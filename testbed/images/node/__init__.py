"""A kind node image without a registry and without a container engine: Debian packages, the locked programs, kind's own files.

    assemble.py       the whole: two layers, and the cache of it
    root.py           the lower layer, an ordinary Debian, by mmdebstrap
    kind_files.py     what kind's base image adds to it, taken from kind's Go module
    own_files.py      what only this image has: the pod network, the kubelet's extra settings (files/)
    system_images.py  the images that kubeadm wants, made of the locked programs
    proxy.py          the largest of those: kube-proxy with iptables and nft
    preload.py        puts them into the node's containerd
    libraries.py      asks a root file system's loader what a program needs

For the kind provider and `dra-testbed images node`, through testbed.images.
"""

from testbed.images.node.assemble import cached_node, node

__all__ = ["cached_node", "node"]
