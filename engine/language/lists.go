package language

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// SizeOf returns the number of elements of a list, for access by index without an iterator.
func SizeOf(l traits.Lister) types.Int {
	size, _ := l.Size().(types.Int)
	return size
}

// roleList is a job's roles as a list. All its elements are allocated together.
type roleList struct {
	views []roleView
	one   [1]roleView // used for a job with one role
}

// rolesNow returns the list of the job's current roles.
func (j *JobView) rolesNow() ref.Val {
	if j.roles == nil || !j.roles.shows(j.Of.Roles) {
		l := &roleList{}
		if l.views = l.one[:]; len(j.Of.Roles) != 1 {
			l.views = make([]roleView, len(j.Of.Roles))
		}
		for i, r := range j.Of.Roles {
			l.views[i] = roleView{View[model.Role]{Of: r, World: j.World, typ: j.World.typ.role}, j.Of}
		}
		j.roles = l
	}
	return j.roles
}

func (l *roleList) shows(roles []*model.Role) bool {
	if len(l.views) != len(roles) {
		return false
	}
	for i, r := range roles {
		if l.views[i].Of != r {
			return false
		}
	}
	return true
}

// plain returns the list as a CEL list.
func (l *roleList) plain() traits.Lister {
	out := make([]ref.Val, len(l.views))
	for i := range l.views {
		out[i] = &l.views[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

// Size implements traits.Sizer.
func (l *roleList) Size() ref.Val { return types.Int(len(l.views)) }

// Get implements traits.Indexer.
func (l *roleList) Get(index ref.Val) ref.Val {
	if i, ok := index.(types.Int); ok && i >= 0 && int(i) < len(l.views) {
		return &l.views[i]
	}
	return l.plain().Get(index)
}

// Iterator implements traits.Iterable.
func (l *roleList) Iterator() traits.Iterator { return l.plain().Iterator() }

// Add implements traits.Adder.
func (l *roleList) Add(other ref.Val) ref.Val { return l.plain().Add(other) }

// Contains implements traits.Container.
func (l *roleList) Contains(value ref.Val) ref.Val { return l.plain().Contains(value) }

// ConvertToNative implements ref.Val.
func (l *roleList) ConvertToNative(t reflect.Type) (any, error) {
	v, err := l.plain().ConvertToNative(t)
	if err != nil {
		return nil, fmt.Errorf("roles: %w", err)
	}
	return v, nil
}

// ConvertToType implements ref.Val.
func (l *roleList) ConvertToType(t ref.Type) ref.Val {
	if t == types.ListType {
		return l
	}
	return l.plain().ConvertToType(t)
}

// Equal implements ref.Val.
func (l *roleList) Equal(other ref.Val) ref.Val { return l.plain().Equal(other) }

// Type implements ref.Val.
func (l *roleList) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *roleList) Value() any { return l.plain().Value() }
