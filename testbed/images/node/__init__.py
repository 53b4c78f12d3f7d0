"""Build a kind node image without a registry or a container engine, from Debian packages, the locked programs and kind's files.

    assemble.py       build the image of two layers, and cache it
    root.py           the lower layer: Debian, installed by mmdebstrap
    kind_files.py     the files that kind's base image adds to Debian, from kind's Go module
    own_files.py      the files that only this image has (files/): the pod network, extra settings of the kubelet
    system_images.py  the images that kubeadm needs, built from the locked programs
    proxy.py          the largest of them: kube-proxy with iptables and nft
    preload.py        import the images into the node's containerd
    libraries.py      find the shared libraries that a program needs

Used by bringup for kind clusters and by `dra-testbed images node`, through testbed.images.
"""

from testbed.images.node.assemble import cached_node, node

__all__ = ["cached_node", "node"]
