//go:build tools

package upstream

import (
	_ "k8s.io/kubernetes/test/e2e/dra/test-driver"
)
