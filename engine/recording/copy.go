package recording

import (
	"slices"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
)

// Objects contains the latest version of each object that a cluster received. The objects are in a list, because it takes less than a
// millisecond to copy a list of 100,000 objects.
type Objects struct {
	list []model.Delta
	at   map[objectKey]int
}

// Take applies deltas that the cluster received.
func (o *Objects) Take(deltas []model.Delta) {
	if o.at == nil {
		o.at = map[objectKey]int{}
	}
	for _, d := range deltas {
		key, ok := keyOf(d.Object)
		if !ok {
			continue
		}
		at, known := o.at[key]
		switch {
		case d.Op != model.Delete && known:
			o.list[at] = model.Delta{Object: d.Object}
		case d.Op != model.Delete:
			o.at[key] = len(o.list)
			o.list = append(o.list, model.Delta{Object: d.Object})
		case known:
			last := len(o.list) - 1
			if moved, ok := keyOf(o.list[last].Object); ok {
				o.list[at], o.at[moved] = o.list[last], at
			}
			o.list[last] = model.Delta{}
			o.list = o.list[:last]
			delete(o.at, key)
		}
	}
}

// Clear removes all objects.
func (o *Objects) Clear() { *o = Objects{} }

// Copy contains the data for a copy of a cluster. It shares with the cluster only objects that never change, so that another goroutine can
// create the copy.
type Copy struct {
	options model.Options
	dims    []string // names of resources, in the cluster's order
	objects []model.Delta
	own     *own
}

// copyStep is how many tasks or jobs CopyOf examines between two calls of Breathe.
const copyStep = 256

// CopyOf collects the data for a copy of a cluster, between two cycles. It changes nothing, and Breathe can stop it.
func CopyOf(c *model.Cluster, o *Objects) *Copy {
	x := &Copy{
		options: model.Options{Seed: c.Seed, SchedulerNames: c.SchedulerNames, Workload: c.Workload, Volumes: volume.New, Limits: c.Limits},
		objects: slices.Clone(o.list),
	}
	for i := range c.Dims.Len() {
		x.dims = append(x.dims, c.Dims.Name(i))
	}
	x.own = ownOf(c)
	x.own.lenient = true
	return x
}

// Cluster creates the copy.
func (x *Copy) Cluster() (*model.Cluster, error) {
	c := model.NewCluster(x.options)
	for _, name := range x.dims {
		c.Dims.Intern(name)
	}
	return c, restore(c, x.objects, x.own)
}
