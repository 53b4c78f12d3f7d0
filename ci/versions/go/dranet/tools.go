//go:build tools

package upstream

import (
	_ "sigs.k8s.io/dranet/cmd/dranet"
)
