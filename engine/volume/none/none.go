// Package none implements model.Volumes for programs without the volume plugins of Kubernetes.
package none

import (
	"errors"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Volumes is for a cluster without a library. A pod with volumes fits on no node, and Trouble states the reason. Only Missing and Trouble
// return useful results.
type Volumes struct{}

const notLookedAt = "volumes are not looked at here: this program was built without Kubernetes' volume plugins"

// Missing implements model.Volumes.
func (Volumes) Missing(*model.Task) string { return "" }

// Trouble implements model.Volumes.
func (Volumes) Trouble(*model.Task) (string, error) { return notLookedAt, nil }

// Places implements model.Volumes.
func (Volumes) Places(*model.Task) string { return "" }

// Defect implements model.Volumes.
func (Volumes) Defect(*model.Task) string { return "" }

// Fits implements model.Volumes.
func (Volumes) Fits(*model.Task, int32) (bool, error) { return false, nil }

// ZoneFits implements model.Volumes.
func (Volumes) ZoneFits(*model.Task, int32) (bool, error) { return false, nil }

// LimitsFit implements model.Volumes.
func (Volumes) LimitsFit(*model.Task, int32) (bool, error) { return false, nil }

// Free implements model.Volumes.
func (Volumes) Free(*model.Task, int32) (bool, error) { return false, nil }

// Bindings implements model.Volumes.
func (Volumes) Bindings(*model.Task, int32) ([]model.VolumeBind, error) {
	return nil, errors.New(notLookedAt)
}
