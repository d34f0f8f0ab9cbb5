package crds

import "embed"

// Manifests holds a CustomResourceDefinition for each of our kinds, as
// manifests/<group>_<plural>.yaml. They are generated from the Go types below this
// folder (make generate) and ready to be applied.
//
//go:embed manifests/*.yaml
var Manifests embed.FS

// JobManifest is the manifest of the kind Job. Programs that need no other manifest are smaller with it.
//
//go:embed manifests/batch.volcano.sh_jobs.yaml
var JobManifest []byte
