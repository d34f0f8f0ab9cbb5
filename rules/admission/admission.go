// Package admission contains the built-in rules of admission as YAML: what is filled in and what is refused. There is one file for each
// kind.
package admission

import "embed"

// FS contains KIND.yaml, with the kind in lower case.
//
//go:embed *.yaml
var FS embed.FS
