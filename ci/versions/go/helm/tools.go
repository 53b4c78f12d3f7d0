//go:build tools

package upstream

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
