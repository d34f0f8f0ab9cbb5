package language

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func namespaceType() *cel.Type  { return Object("Namespace") }
func quotaType() *cel.Type      { return Object("Quota") }
func nodeGroupsType() *cel.Type { return Object("NodeGroups") }

type (
	// NamespaceView is a namespace as a value.
	NamespaceView struct {
		View[model.Namespace]
		labels ref.Val
	}
	quotaView      struct{ View[model.Quota] }
	nodeGroupsView struct{ View[model.NodeGroups] }
)

// Value implements ref.Val.
func (v *NamespaceView) Value() any { return v }

// Value implements ref.Val.
func (v *quotaView) Value() any { return v }

// Value implements ref.Val.
func (v *nodeGroupsView) Value() any { return v }

func (v *NamespaceView) name() string { return v.Of.Name }
func (v *quotaView) name() string     { return v.Of.Namespace + "/" + v.Of.Name }

// NamespaceView returns a namespace as rows see it. If its object does not exist, it has no labels.
func (w *World) NamespaceView(name string) *NamespaceView {
	of, known := w.c.Namespaces[name]
	if v := w.Namespaces[name]; v != nil && (v.Of == of || !known && v.Of.Labels == nil) {
		return v
	}
	if !known {
		of = &model.Namespace{Name: name}
	}
	v := &NamespaceView{
		View:   View[model.Namespace]{Of: of, World: w, typ: namespaceType(), Memos: make([]Memo, w.layout.Memos.Namespace)},
		labels: w.stringMap(of.Labels),
	}
	w.Namespaces[name] = v
	return v
}

// NamespaceNames returns the names of namespaces that have an object or a job, sorted.
func (w *World) NamespaceNames() []string {
	names := slices.Collect(maps.Keys(w.c.Namespaces))
	for _, j := range w.c.Jobs {
		names = append(names, j.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodeGroupsView returns an empty value if of is nil.
func (w *World) nodeGroupsView(of *model.NodeGroups) *nodeGroupsView {
	if of == nil {
		of = &model.NodeGroups{}
	}
	return &nodeGroupsView{View[model.NodeGroups]{Of: of, World: w, typ: nodeGroupsType()}}
}

func (q *QueueView) nodeGroupLimits() ref.Val {
	if err := q.Of.NodeGroupLimitsError; err != nil {
		return types.NewErr("queue %s: %v", q.Of.Name, err)
	}
	if q.limits == nil {
		m := map[ref.Val]ref.Val{}
		for group, r := range q.Of.NodeGroupLimits {
			m[types.String(group)] = q.World.Amounts(r)
		}
		q.limits = types.NewRefValMap(types.DefaultTypeAdapter, m)
	}
	return q.limits
}

// namespaceObjects returns the types of this file.
func namespaceObjects() []*rules.Object {
	return []*rules.Object{
		{
			Name: "Namespace", Type: namespaceType(), Doc: "A namespace; attributes that sum up over its jobs or tasks are on it.",
			Members: []*rules.Member{
				stringField("name", FromIdentity, rules.Static, "name", func(n *NamespaceView) string { return n.Of.Name }),
				field("labels", stringMapType(), FromSpec, rules.ByObject, "labels", func(n *NamespaceView) ref.Val { return n.labels }),
			},
		},
		{Name: "Quota", Type: quotaType(), Doc: "A ResourceQuota, as its status has it.", Members: []*rules.Member{
			stringField("name", FromIdentity, rules.Static, "name", func(q *quotaView) string { return q.Of.Name }),
			amountField("hard", FromSpec, rules.ByObject, "status.hard, by names as they are written there: requests.cpu, pods",
				func(q *quotaView) (model.Resources, *Amounts, *World) { return q.Of.Hard, nil, q.World }),
			amountField("used", FromSpec, rules.ByObject, "status.used, by the same names",
				func(q *quotaView) (model.Resources, *Amounts, *World) { return q.Of.Used, nil, q.World }),
		}},
		{
			Name: "NodeGroups", Type: nodeGroupsType(),
			Doc: "The groups of nodes, by their label volcano.sh/nodegroup-name, that a queue is for or against.", Members: nodeGroupsFields(),
		},
	}
}

func nodeGroupsFields() []*rules.Member {
	groups := func(name, doc string, get func(g *model.NodeGroups) []string) *rules.Member {
		return field(name, cel.ListType(cel.StringType), FromSpec, rules.ByObject, doc,
			func(g *nodeGroupsView) ref.Val { return StringList(get(g.Of)) })
	}
	return []*rules.Member{
		groups("required", "nodeGroupAffinity, required", func(g *model.NodeGroups) []string { return g.Required }),
		groups("preferred", "nodeGroupAffinity, preferred, in its order", func(g *model.NodeGroups) []string { return g.Preferred }),
		groups("antiRequired", "nodeGroupAntiAffinity, required", func(g *model.NodeGroups) []string { return g.AntiRequired }),
		groups("antiPreferred", "nodeGroupAntiAffinity, preferred", func(g *model.NodeGroups) []string { return g.AntiPreferred }),
	}
}

// namespaceJobFields returns the fields of a job about its namespace.
func namespaceJobFields() []*rules.Member {
	type v = *JobView
	return []*rules.Member{
		bounded(field("quotas", cel.ListType(quotaType()), FromRelated|ToNamespace, rules.ByObject, "ResourceQuotas of its namespace, by name",
			func(j v) ref.Val {
				return listOf(j.World.c.Quotas[j.Of.Namespace], func(q *model.Quota) ref.Val {
					return &quotaView{View[model.Quota]{Of: q, World: j.World, typ: quotaType()}}
				})
			}), 16),
		field("quotaRequest", ResourcesType(), FromSpec|FromRelated, rules.ByObject,
			"spec.minResources by the names of ResourceQuotas: with requests.cpu and its like, as they are written; a name that no quota and no "+
				"node has is left out", func(j v) ref.Val {
				return j.World.Amounts(j.World.c.QuotaRequest(j.Of))
			}),
		field("namespaceInfo", namespaceType(), ToNamespace, rules.ByObject, "its namespace: labels, and attributes on namespaces",
			func(j v) ref.Val { return j.World.NamespaceView(j.Of.Namespace) }),
	}
}

// nodeGroupFields returns the fields of a queue about node groups.
func nodeGroupFields() []*rules.Member {
	type v = *QueueView
	return []*rules.Member{
		field("nodeGroups", nodeGroupsType(), ToParts, rules.ByObject, "spec.affinity; empty where there is none",
			func(q v) ref.Val { return q.World.nodeGroupsView(q.Of.NodeGroups) }),
		field("nodeGroupsInherited", nodeGroupsType(), FromRelated|ToParts, rules.ByObject,
			"its own, else those of its nearest ancestor with any", func(q v) ref.Val {
				return q.World.nodeGroupsView(q.World.c.NodeGroupsInherited(q.Of))
			}),
		field("nodeGroupLimits", cel.MapType(cel.StringType, ResourcesType()), FromSpec, rules.ByObject,
			"annotation volcano.sh/nodegroup-resource-limits, JSON, by group; reading a malformed one is an error", v.nodeGroupLimits),
	}
}

// emptyFunction returns the function isEmpty of Resources and of NodeGroups.
func emptyFunction() *rules.Function {
	f := single("isEmpty", "Of Resources: all amounts but pods are about 0. Of NodeGroups: no group is named.", cel.BoolType,
		func(a *Amounts) ref.Val { return types.Bool(a.Resources.IsEmpty()) })
	groups := Method("isEmpty", "", []*cel.Type{nodeGroupsType()}, cel.BoolType, func(args ...ref.Val) ref.Val {
		g, ok := args[0].(*nodeGroupsView)
		if !ok {
			return wrongArgument(args[0])
		}
		return types.Bool(len(g.Of.Required)+len(g.Of.Preferred)+len(g.Of.AntiRequired)+len(g.Of.AntiPreferred) == 0)
	}, "{0}.required", "{0}.preferred", "{0}.antiRequired", "{0}.antiPreferred")
	groups.Overloads[0].ID = "nodegroups_isEmpty"
	f.Overloads = append(f.Overloads, groups.Overloads...)
	return f
}
