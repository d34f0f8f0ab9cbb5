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

// TypicalType is that of the most frequent shapes of task.
func TypicalType() *cel.Type { return Object("Typical") }

// typical is a value of the accounting function typicalTasks.
type typical struct {
	of        *quota.Typical
	typ       *cel.Type
	fragments *measure
	fills     sync.Map // horizon to *measure; several may ask at once
}

// ConvertToNative implements ref.Val.
func (t *typical) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("typical tasks have no other form")
}

// ConvertToType implements ref.Val: the text is for messages.
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

// name is the same for equal ones: columns are kept while it is.
func (t *typical) name() string { return t.of.Key() }

// TypicalTasks counts the shapes of the cluster's workload, and of its nodes; v is the part of the tasks that is typical.
func TypicalTasks(c *model.Cluster, v ref.Val) ref.Val {
	cover, ok := Number(v)
	if !ok || !(cover > 0 && cover <= 1) {
		return types.NewErr("cover must be above 0 and at most 1, is %s", Text(v))
	}
	return NewTypical(quota.NewTypical(c.Shapes(), cover, Machines(c)))
}

// Machines counts the nodes with devices that are alike, in the order in which the first of each stands.
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

// NewTypical makes a value of them.
func NewTypical(of *quota.Typical) *typical {
	return &typical{of: of, typ: TypicalType(), fragments: &measure{of: of.Fragments, gain: quota.Gain}}
}
