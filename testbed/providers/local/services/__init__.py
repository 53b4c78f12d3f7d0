"""What makes Services work in a local cluster: kube-proxy on the nodes, CoreDNS in the control plane, and a check for netfilter."""
