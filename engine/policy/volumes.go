package policy

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	corev1 "k8s.io/api/core/v1"

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

// volumeMemo is what the rows that read volumes said to a task, by node.
type volumeMemo struct {
	pod     *corev1.Pod
	status  model.Status
	storage uint64 // version
	verdict []int16
	version []uint64 // of the node, plus 1; 0: not asked
}

// heldByTask says that what the predicates on volumes say to a task holds while neither it, nor the node, nor anything of storage changes.
func heldByTask(rows []*rowPlan) bool {
	return !slices.ContainsFunc(rows, func(r *rowPlan) bool {
		return r.volumes && (!r.Reads.Only("task", "node") || slices.ContainsFunc(r.Reads.All, func(read rules.Read) bool {
			return !ofVolumes(read) && (beyondNode(read) || read.Root == "task" && read.Changes > rules.ByObject)
		}))
	})
}

// volumeMemo is the memo of a task, empty where it does not hold any more; nil where nothing can be remembered.
func (s *Session) volumeMemo(t *model.Task, rows int) *volumeMemo {
	if s.NoCache || !s.columns.holdVolumes {
		return nil
	}
	v := s.taskView(t)
	m, now := v.volumes, s.c.Storage.Version
	if m == nil || m.pod != t.Object || m.status != t.Status || m.storage != now || len(m.verdict) != rows {
		m = &volumeMemo{t.Object, t.Status, now, make([]int16, rows), make([]uint64, rows)}
		v.volumes = m
	}
	return m
}

// withVolumes is a class as one task with volumes sees it: what the class lets through is asked of
// the rows that read volumes. It costs as many evaluations of them as there are such nodes, when something of storage
// has changed since the task was asked about; else as many as nodes that have changed.
func (c *Class) withVolumes(t *model.Task) *Class {
	x := c.v.ofTask
	x.task, x.epoch, x.touched = t, c.epoch, c.touched
	x.cells, x.fitting = append(x.cells[:0], c.cells...), [fitsLater + 1]int{}
	x.rejections.at = 0
	x.domains = domains{context: c.domains.context}
	x.rows = c.rows
	x.rows.c = x
	if c.domains.group != nil {
		x.domains.group = c.domains.context.NewGroup()
		x.rows.ownGroupScores(len(x.cells))
	}
	c.v.volumes = c.v.about.volumeMemo(t, len(x.cells))
	x.update(ofTaskVolumes, c.v.nodes.ByOrder())
	x.scoreGroup(nil)
	return x
}

// ownGroupScores makes the scores of the group its own: volumes leave a task fewer nodes to choose from than its class has.
func (x *classRows) ownGroupScores(rows int) {
	x.raw, x.values, x.ranges = slices.Clone(x.raw), slices.Clone(x.values), slices.Clone(x.ranges)
	for k, of := range x.scoreLayers {
		if of == ofGroup {
			x.raw[k], x.values[k], x.ranges[k] = make([]float64, rows), nil, oneValue{same: true}
		}
	}
}

// rejectedByVolumes gives the first of the predicates on volumes that says no to a task on a node, 0 if none does.
func (v *verdicts) rejectedByVolumes(f *Frame, row int32) int16 {
	memo, version := v.volumes, v.nodes.Version[row]+1
	if memo != nil && memo.version[row] == version {
		return memo.verdict[row]
	}
	f.Point(row)
	verdict := int16(0)
	for _, r := range v.plan.predicates {
		if r.volumes && v.ask.opinion(r.Rule, f) == No {
			verdict = int16(r.Number)
			break
		}
	}
	if memo != nil {
		memo.verdict[row], memo.version[row] = verdict, version
	}
	return verdict
}
