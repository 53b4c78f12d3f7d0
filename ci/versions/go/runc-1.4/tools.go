//go:build tools

package upstream

import (
	_ "github.com/opencontainers/runc"
)
