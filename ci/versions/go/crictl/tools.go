//go:build tools

package upstream

import (
	_ "sigs.k8s.io/cri-tools/cmd/crictl"
)
