package policy

import (
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

func namespaceType() *cel.Type  { return object("Namespace") }
func quotaType() *cel.Type      { return object("Quota") }
func nodeGroupsType() *cel.Type { return object("NodeGroups") }

type (
	namespaceView struct {
		view[model.Namespace]
		labels ref.Val
	}
	quotaView      struct{ view[model.Quota] }
	nodeGroupsView struct{ view[model.NodeGroups] }
)

// Value implements ref.Val.
func (v *namespaceView) Value() any { return v }

// Value implements ref.Val.
func (v *quotaView) Value() any { return v }

// Value implements ref.Val.
func (v *nodeGroupsView) Value() any { return v }

func (v *namespaceView) name() string { return v.of.Name }
func (v *quotaView) name() string     { return v.of.Namespace + "/" + v.of.Name }

// namespaceView is a namespace as rows see it: one without labels where there is no such object.
func (w *World) namespaceView(name string) *namespaceView {
	of, known := w.c.Namespaces[name]
	if v := w.namespaces[name]; v != nil && (v.of == of || !known && v.of.Labels == nil) {
		return v
	}
	if !known {
		of = &model.Namespace{Name: name}
	}
	v := &namespaceView{view: view[model.Namespace]{of: of, w: w, typ: namespaceType(), memo: make([]memo, w.layout.Memos.Namespace)}, labels: w.stringMap(of.Labels)}
	w.namespaces[name] = v
	return v
}

// namespaceNames are those that have an object, or a job, sorted.
func (w *World) namespaceNames() []string {
	names := slices.Collect(maps.Keys(w.c.Namespaces))
	for _, j := range w.c.Jobs {
		names = append(names, j.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nodeGroupsView stands for no groups where of is nil.
func (w *World) nodeGroupsView(of *model.NodeGroups) *nodeGroupsView {
	if of == nil {
		of = &model.NodeGroups{}
	}
	return &nodeGroupsView{view[model.NodeGroups]{of: of, w: w, typ: nodeGroupsType()}}
}

func (q *queueView) nodeGroupLimits() ref.Val {
	if err := q.of.NodeGroupLimitsError; err != nil {
		return types.NewErr("queue %s: %v", q.of.Name, err)
	}
	if q.limits == nil {
		m := map[ref.Val]ref.Val{}
		for group, r := range q.of.NodeGroupLimits {
			m[types.String(group)] = q.w.Amounts(r)
		}
		q.limits = types.NewRefValMap(types.DefaultTypeAdapter, m)
	}
	return q.limits
}

// namespaceObjects declares the types of this file.
func namespaceObjects() []*rules.Object {
	return []*rules.Object{
		{Name: "Namespace", Type: namespaceType(), Doc: "A namespace; attributes that sum up over its jobs or tasks are on it.", Members: []*rules.Member{
			stringField("name", fromIdentity, rules.Static, "name", func(n *namespaceView) string { return n.of.Name }),
			field("labels", stringMapType(), fromSpec, rules.ByObject, "labels", func(n *namespaceView) ref.Val { return n.labels }),
		}},
		{Name: "Quota", Type: quotaType(), Doc: "A ResourceQuota, as its status has it.", Members: []*rules.Member{
			stringField("name", fromIdentity, rules.Static, "name", func(q *quotaView) string { return q.of.Name }),
			amountField("hard", fromSpec, rules.ByObject, "status.hard, by names as they are written there: requests.cpu, pods", func(q *quotaView) (model.Resources, *amounts, *World) { return q.of.Hard, nil, q.w }),
			amountField("used", fromSpec, rules.ByObject, "status.used, by the same names", func(q *quotaView) (model.Resources, *amounts, *World) { return q.of.Used, nil, q.w }),
		}},
		{Name: "NodeGroups", Type: nodeGroupsType(), Doc: "The groups of nodes, by their label volcano.sh/nodegroup-name, that a queue is for or against.", Members: nodeGroupsFields()},
	}
}

func nodeGroupsFields() []*rules.Member {
	groups := func(name, doc string, get func(g *model.NodeGroups) []string) *rules.Member {
		return field(name, cel.ListType(cel.StringType), fromSpec, rules.ByObject, doc, func(g *nodeGroupsView) ref.Val { return stringList(get(g.of)) })
	}
	return []*rules.Member{
		groups("required", "nodeGroupAffinity, required", func(g *model.NodeGroups) []string { return g.Required }),
		groups("preferred", "nodeGroupAffinity, preferred, in its order", func(g *model.NodeGroups) []string { return g.Preferred }),
		groups("antiRequired", "nodeGroupAntiAffinity, required", func(g *model.NodeGroups) []string { return g.AntiRequired }),
		groups("antiPreferred", "nodeGroupAntiAffinity, preferred", func(g *model.NodeGroups) []string { return g.AntiPreferred }),
	}
}

// namespaceJobFields are what a job has of its namespace.
func namespaceJobFields() []*rules.Member {
	type v = *jobView
	return []*rules.Member{
		bounded(field("quotas", cel.ListType(quotaType()), fromRelated|toNamespace, rules.ByObject, "ResourceQuotas of its namespace, by name", func(j v) ref.Val {
			return listOf(j.w.c.Quotas[j.of.Namespace], func(q *model.Quota) ref.Val {
				return &quotaView{view[model.Quota]{of: q, w: j.w, typ: quotaType()}}
			})
		}), 16),
		field("quotaRequest", resourcesType(), fromSpec|fromRelated, rules.ByObject, "spec.minResources by the names of ResourceQuotas: with requests.cpu and its like, as they are written; a name that no quota and no node has is left out", func(j v) ref.Val {
			return j.w.Amounts(j.w.c.QuotaRequest(j.of))
		}),
		field("namespaceInfo", namespaceType(), toNamespace, rules.ByObject, "its namespace: labels, and attributes on namespaces", func(j v) ref.Val { return j.w.namespaceView(j.of.Namespace) }),
	}
}

// nodeGroupFields are what a queue has of node groups.
func nodeGroupFields() []*rules.Member {
	type v = *queueView
	return []*rules.Member{
		field("nodeGroups", nodeGroupsType(), toParts, rules.ByObject, "spec.affinity; empty where there is none", func(q v) ref.Val { return q.w.nodeGroupsView(q.of.NodeGroups) }),
		field("nodeGroupsInherited", nodeGroupsType(), fromRelated|toParts, rules.ByObject, "its own, else those of its nearest ancestor with any", func(q v) ref.Val {
			return q.w.nodeGroupsView(q.w.c.NodeGroupsInherited(q.of))
		}),
		field("nodeGroupLimits", cel.MapType(cel.StringType, resourcesType()), fromSpec, rules.ByObject, "annotation volcano.sh/nodegroup-resource-limits, JSON, by group; reading a malformed one is an error", v.nodeGroupLimits),
	}
}

// emptyFunction says of Resources and of NodeGroups that there is nothing in them.
func emptyFunction() *rules.Function {
	f := single("isEmpty", "Of Resources: all amounts but pods are about 0. Of NodeGroups: no group is named.", cel.BoolType, func(a *amounts) ref.Val { return types.Bool(a.r.IsEmpty()) })
	groups := method("isEmpty", "", []*cel.Type{nodeGroupsType()}, cel.BoolType, func(args ...ref.Val) ref.Val {
		g, ok := args[0].(*nodeGroupsView)
		if !ok {
			return wrongArgument(args[0])
		}
		return types.Bool(len(g.of.Required)+len(g.of.Preferred)+len(g.of.AntiRequired)+len(g.of.AntiPreferred) == 0)
	}, "{0}.required", "{0}.preferred", "{0}.antiRequired", "{0}.antiPreferred")
	groups.Overloads[0].ID = "nodegroups_isEmpty"
	f.Overloads = append(f.Overloads, groups.Overloads...)
	return f
}
