//go:build tools

package upstream

import (
	_ "github.com/kubernetes-sigs/dra-driver-cpu/cmd/dracpu"
)
