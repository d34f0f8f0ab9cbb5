package language

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// TypicalType returns the type of the most frequent task shapes.
func TypicalType() *cel.Type { return Object("Typical") }

// typical is the value of the accounting function typicalTasks.
type typical struct {
	of        *quota.Typical
	typ       *cel.Type
	fragments *measure
	fills     sync.Map // horizon to *measure; several goroutines may use it at once
}

// ConvertToNative implements ref.Val.
func (t *typical) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("typical tasks have no other form")
}

// ConvertToType implements ref.Val. The text is for messages.
func (t *typical) ConvertToType(to ref.Type) ref.Val {
	switch to {
	case types.StringType:
		return types.String(t.of.String())
	case types.TypeType:
		return TypicalType()
	}
	return types.NewErr("typical tasks cannot become a %s", to.TypeName())
}

// Equal implements ref.Val.
func (t *typical) Equal(other ref.Val) ref.Val {
	o, ok := other.(*typical)
	return types.Bool(ok && o.name() == t.name())
}

// Type implements ref.Val.
func (t *typical) Type() ref.Type { return t.typ }

// Value implements ref.Val.
func (t *typical) Value() any { return t }

// name is the same for equal values. Columns are cached while it does not change.
func (t *typical) name() string { return t.of.Key() }

// TypicalTasks counts the task shapes of the cluster's workload and its machines. v is the fraction of tasks that counts as typical.
func TypicalTasks(c *model.Cluster, v ref.Val) ref.Val {
	cover, ok := Number(v)
	if !ok || !(cover > 0 && cover <= 1) {
		return types.NewErr("cover must be above 0 and at most 1, is %s", Text(v))
	}
	return NewTypical(quota.NewTypical(c.Shapes(), cover, Machines(c)))
}

// Machines counts equal nodes with devices, in the order of the first node of each group.
func Machines(c *model.Cluster) []quota.Machine {
	var out []quota.Machine
	at := map[quota.Machine]int{}
	for row, gpus := range c.Nodes.GPUs {
		if len(gpus) == 0 {
			continue
		}
		m := quota.Machine{CPU: c.Nodes.AllocatableOf(int32(row)).Get(model.CPU), Devices: len(gpus), Model: c.Nodes.Rows[row].GPUModel}
		i, known := at[m]
		if !known {
			i = len(out)
			at[m] = i
			out = append(out, m)
		}
		out[i].Nodes++
	}
	return out
}

// NewTypical returns them as a value.
func NewTypical(of *quota.Typical) *typical {
	return &typical{of: of, typ: TypicalType(), fragments: &measure{of: of.Fragments, gain: quota.Gain}}
}
