package language

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume/none"
	"github.com/celsius-scheduler/celsius/rules"
)

func volumeFields() []*rules.Member {
	type v = *TaskView
	volumes := hidden("volumes", FromSpec|FromVolumes, rules.ByStep, "what its volumes are bound to, are promised, or can get",
		func(t v) ref.Val {
			if !t.Of.HasVolumes {
				return types.String("")
			}
			return types.String(strings.Join(t.Of.Claims, ",") + "@" + strconv.FormatUint(t.World.c.Storage.Version, 10))
		})
	return []*rules.Member{
		boolField("hasVolumes", FromSpec, rules.ByObject, "claims volumes, or names disks itself", func(t v) bool { return t.Of.HasVolumes }),
		volumes,
		hidden("claims", FromSpec, rules.ByObject, "the claims that its volumes name",
			func(t v) ref.Val { return types.String(strings.Join(t.Of.Claims, ",")) }),
	}
}

// VolumeFunctions returns the functions about volumes.
func VolumeFunctions() []*rules.Function {
	const volumes = "{0}.volumes"
	ofTask := func(name, doc string, result *cel.Type, f func(t *TaskView, v model.Volumes) ref.Val) *rules.Function {
		return Method(name, doc, []*cel.Type{TaskType()}, result, func(args ...ref.Val) ref.Val {
			t, ok := args[0].(*TaskView)
			if !ok {
				return wrongArgument(args[0])
			}
			v, err := t.World.Storage()
			if err != nil {
				return types.WrapErr(err)
			}
			return f(t, v)
		}, volumes)
	}
	onNode := func(name, doc string, f func(v model.Volumes, t *model.Task, row int32) (bool, error), reads ...string) *rules.Function {
		return taskNode(name, doc, cel.BoolType, func(t *TaskView, n *NodeView) ref.Val {
			if !t.Of.HasVolumes {
				return types.True
			}
			v, err := t.World.Storage()
			if err != nil {
				return types.WrapErr(err)
			}
			ok, err := f(v, t.Of, n.Of.Row)
			if err != nil {
				return types.NewErr("volumes of pod %s: %v", t.Of.Key, err)
			}
			return types.Bool(ok)
		}, append(reads, volumes)...)
	}
	return []*rules.Function{
		ofTask("claimsExist", "Every claim that the pod's volumes name is there, an ephemeral volume's too.", cel.BoolType,
			func(t *TaskView, v model.Volumes) ref.Val {
				return types.Bool(v.Missing(t.Of) == "")
			}),
		ofTask("volumeTrouble", "Why the pod's claims let it go to no node at all, \"\" if they do not: one is missing, being deleted, lost, "+
			"another pod's, or unbound though its storage class binds at once.", cel.StringType, func(t *TaskView, v model.Volumes) ref.Val {
			trouble, err := v.Trouble(t.Of)
			if err != nil {
				return types.NewErr("volumes of pod %s: %v", t.Of.Key, err)
			}
			return types.String(trouble)
		}),
		ofTask("volumePlaces", "Where the volumes of the pod's claims are: claim, volume, and zone or nodes. It is \"\" if a claim has no "+
			"volume yet, or every node reaches the volumes.", cel.StringType,
			func(t *TaskView, v model.Volumes) ref.Val { return types.String(v.Places(t.Of)) }),
		onNode("volumesFit", "Every bound claim's volume reaches the node, and every other claim finds a volume there that no other claim "+
			"was promised, or can be provisioned: Kubernetes' VolumeBinding. It looks at each volume of the claims' storage classes.",
			model.Volumes.Fits, "{1}.name", "{1}.labels"),
		onNode("volumeZonesFit", "The node is in the zone and the region that the labels of the bound claims' volumes name: Kubernetes' "+
			"VolumeZone.", model.Volumes.ZoneFits, "{1}.labels"),
		onNode("volumeLimitsFit", "The node can attach the pod's volumes in addition to those of its tasks and VolumeAttachments, by the "+
			"limits of its CSINode: Kubernetes' NodeVolumeLimits.",
			model.Volumes.LimitsFit, "{1}.name", "{1}.tasks.claims"),
		onNode("volumesFree", "No other pod uses a claim of mode ReadWriteOncePod that the pod has, and none on the node a disk of it that "+
			"cannot be shared: Kubernetes' VolumeRestrictions.",
			model.Volumes.Free, "{1}.name", "{1}.tasks.claims"),
	}
}

// Storage returns the volume library's data, which is built at the first call. Without a library, no task with volumes fits a node.
func (w *World) Storage() (model.Volumes, error) {
	if w.volumes == nil {
		if w.c.Storage.Library == nil {
			w.volumes = none.Volumes{}
			return w.volumes, nil
		}
		v, err := w.c.Storage.Library(w.c)
		if err != nil {
			return nil, err
		}
		w.volumes = v
	}
	return w.volumes, nil
}

// Bindings returns the work for a task's claims before it can be bound to a node; nil for most tasks. It returns an error if the claims do
// not fit the node, because rows of the policy may not have checked this.
func (w *World) Bindings(t *model.Task, row int32) ([]model.VolumeBind, error) {
	if len(t.Claims) == 0 {
		return nil, nil
	}
	v, err := w.Storage()
	if err != nil {
		return nil, err
	}
	switch trouble, err := v.Trouble(t); {
	case err != nil:
		return nil, err
	case trouble != "":
		return nil, errors.New(trouble)
	}
	return v.Bindings(t, row)
}

// VolumePlaces states where the volumes of a pod are. It is "" if every node reaches them, or the library of volumes fails.
func (w *World) VolumePlaces(t *model.Task) string {
	volumes, err := w.Storage()
	if err != nil {
		return ""
	}
	return volumes.Places(t)
}

// VolumeDefect states which claim of a pod no node can use. It is "" if there is none, or the library of volumes fails.
func (w *World) VolumeDefect(t *model.Task) string {
	volumes, err := w.Storage()
	if err != nil {
		return ""
	}
	return volumes.Defect(t)
}
