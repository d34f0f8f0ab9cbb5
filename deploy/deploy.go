// Package deploy is what a cluster gets beside the CRDs: kustomize bases, one folder a part. What programs apply too
// is embedded.
package deploy

import "embed"

// Guard is the admission policies that hold without any part of ours running: the API server's own.
//
//go:embed guard/*.yaml
var Guard embed.FS
