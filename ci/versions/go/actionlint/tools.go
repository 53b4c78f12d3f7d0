//go:build tools

package upstream

import (
	_ "github.com/rhysd/actionlint/cmd/actionlint"
)
