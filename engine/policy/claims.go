package policy

import (
	"errors"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/volume"
	"github.com/celsius-scheduler/celsius/rules"
)

func volumeFields() []*rules.Member {
	type v = *taskView
	volumes := hidden("volumes", fromSpec|fromVolumes, rules.ByStep, "what its volumes are bound to, are promised, or can get", func(t v) ref.Val {
		if !t.of.HasVolumes {
			return types.String("")
		}
		return types.String(strings.Join(t.of.Claims, ",") + "@" + strconv.FormatUint(t.w.c.Storage.Version, 10))
	})
	return []*rules.Member{
		boolField("hasVolumes", fromSpec, rules.ByObject, "claims volumes, or names disks itself", func(t v) bool { return t.of.HasVolumes }),
		volumes,
		hidden("claims", fromSpec, rules.ByObject, "the claims that its volumes name", func(t v) ref.Val { return types.String(strings.Join(t.of.Claims, ",")) }),
	}
}

func volumeFunctions() []*rules.Function {
	const volumes = "{0}.volumes"
	ofTask := func(name, doc string, result *cel.Type, f func(t *taskView, v *volume.Volumes) ref.Val) *rules.Function {
		return method(name, doc, []*cel.Type{taskType()}, result, func(args ...ref.Val) ref.Val {
			t, ok := args[0].(*taskView)
			if !ok {
				return wrongArgument(args[0])
			}
			v, err := t.w.storage()
			if err != nil {
				return types.WrapErr(err)
			}
			return f(t, v)
		}, volumes)
	}
	onNode := func(name, doc string, f func(v *volume.Volumes, t *model.Task, row int32) (bool, error), reads ...string) *rules.Function {
		return taskNode(name, doc, cel.BoolType, func(t *taskView, n *nodeView) ref.Val {
			if !t.of.HasVolumes {
				return types.True
			}
			v, err := t.w.storage()
			if err != nil {
				return types.WrapErr(err)
			}
			ok, err := f(v, t.of, n.of.Row)
			if err != nil {
				return types.NewErr("volumes of pod %s: %v", t.of.Key, err)
			}
			return types.Bool(ok)
		}, append(reads, volumes)...)
	}
	return []*rules.Function{
		ofTask("claimsExist", "Every claim that the pod's volumes name is there, an ephemeral volume's too.", cel.BoolType, func(t *taskView, v *volume.Volumes) ref.Val {
			return types.Bool(v.Missing(t.of) == "")
		}),
		ofTask("volumeTrouble", "Why the pod's claims let it go to no node at all, \"\" if they do not: one is missing, being deleted, lost, another pod's, or unbound though its storage class binds at once.", cel.StringType, func(t *taskView, v *volume.Volumes) ref.Val {
			trouble, err := v.Trouble(t.of)
			if err != nil {
				return types.NewErr("volumes of pod %s: %v", t.of.Key, err)
			}
			return types.String(trouble)
		}),
		onNode("volumesFit", "Every bound claim's volume reaches the node, and every other claim finds a volume there that nobody else was promised, or can be provisioned: Kubernetes' VolumeBinding. It looks at each volume of the claims' storage classes.",
			(*volume.Volumes).Fits, "{1}.name", "{1}.labels"),
		onNode("volumeZonesFit", "The node is in the zone and the region that the labels of the bound claims' volumes name: Kubernetes' VolumeZone.", (*volume.Volumes).ZoneFits, "{1}.labels"),
		onNode("volumeLimitsFit", "The node can attach the pod's volumes beside those of its tasks and VolumeAttachments, by the limits of its CSINode: Kubernetes' NodeVolumeLimits.",
			(*volume.Volumes).LimitsFit, "{1}.name", "{1}.tasks.claims"),
		onNode("volumesFree", "No other pod uses a claim of mode ReadWriteOncePod that the pod has, and none on the node a disk of it that cannot be shared: Kubernetes' VolumeRestrictions.",
			(*volume.Volumes).Free, "{1}.name", "{1}.tasks.claims"),
	}
}

// storage is Kubernetes' volume plugins beside the cluster, made when they are first asked.
func (w *World) storage() (*volume.Volumes, error) {
	if w.volumes == nil {
		v, err := volume.New(w.c)
		if err != nil {
			return nil, err
		}
		w.volumes = v
	}
	return w.volumes, nil
}

// Bindings is what has to be done for a task's claims before it can be bound to a node; nothing for most. It is an error
// where the claims do not fit the node, which no row of the policy may have asked about.
func (w *World) Bindings(t *model.Task, row int32) ([]model.VolumeBind, error) {
	if len(t.Claims) == 0 {
		return nil, nil
	}
	v, err := w.storage()
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
