package policy

import (
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/quota"
)

// treePart is a computed field of a quotaTree.
type treePart struct {
	name, doc string
	typ       *cel.Type
	args      []string // the arguments that it depends on
	get       func(at *TreePlaces, i int) ref.Val
}

// treeParts returns the fields that every quotaTree has.
func treeParts() []treePart {
	structure := structureArguments()
	limits := append([]string{"total", "guarantee", "capability"}, structure...)
	amount := func(of func(p *quota.Place) model.Resources) func(*TreePlaces, int) ref.Val {
		return func(at *TreePlaces, i int) ref.Val { return at.w.Amounts(of(&at.places[i])) }
	}
	structural := func(name, doc string, typ *cel.Type, get func(at *TreePlaces, i int) ref.Val) treePart {
		return treePart{name, doc, typ, structure, get}
	}
	return []treePart{
		structural("path", "queues from below the root down to this one, itself last; of the root, the root", cel.ListType(language.QueueType()),
			func(at *TreePlaces, i int) ref.Val { return at.paths[i] }),
		structural("root", "the root of its tree; itself where there is no tree", language.QueueType(),
			func(at *TreePlaces, i int) ref.Val { return at.w.QueueView(at.queues[at.places[i].Root]) }),
		structural("leaf", "no queue names it as its parent", cel.BoolType,
			func(at *TreePlaces, i int) ref.Val { return types.Bool(at.places[i].Leaf) }),
		structural("treeValid", "its parents lead to the root", cel.BoolType,
			func(at *TreePlaces, i int) ref.Val { return types.Bool(at.places[i].Problem == "") }),
		structural("treeProblem", "why its parents do not lead to the root, \"\" if they do", cel.StringType,
			func(at *TreePlaces, i int) ref.Val { return types.String(at.places[i].Problem) }),
		{
			limitedBy,
			"of the queues on its path, itself first, and the root of its tree, those to which what is held can be too much: they have a limit",
			cel.ListType(language.QueueType()), limits, (*TreePlaces).limitsOf,
		},
		{
			"capability", "its own capability, with what it lacks from above; a missing dimension is no limit", language.ResourcesType(),
			append([]string{"capability"}, structure...), amount(func(p *quota.Place) model.Resources { return p.Capability }),
		},
		{
			"realCapability",
			"the most that it may hold: what there is above, less what its siblings are guaranteed, and no more than its capability",
			language.ResourcesType(), limits, amount(func(p *quota.Place) model.Resources { return p.Real }),
		},
		{
			"deserved", "what it deserves, at least its guarantee", language.ResourcesType(),
			append([]string{"deserved"}, limits...), amount(func(p *quota.Place) model.Resources { return p.Deserved }),
		},
	}
}

// limitedBy is the field that lists the queues of path that have a limit.
const limitedBy = "limitedBy"

// limitsOf returns the queues on the path to the root that have a limit.
func (at *TreePlaces) limitsOf(i int) ref.Val {
	var out []ref.Val
	add := func(on int) {
		if at.limited(on) {
			out = append(out, at.w.QueueView(at.queues[on]))
		}
	}
	path := at.places[i].Path
	for _, on := range slices.Backward(path) {
		add(on)
	}
	if root := at.places[i].Root; !slices.Contains(path, root) {
		add(root)
	}
	return language.List(out)
}

// limited reports whether a queue has a limit for any resource.
func (at *TreePlaces) limited(i int) bool {
	for dim := range at.w.Cluster().Dims.Len() {
		if !math.IsInf(at.places[i].Real.Get(dim), 1) {
			return true
		}
	}
	return false
}

// TreePlaces contains the positions of queues in a tree and the sums along it. The tree's computed fields are read from it.
type TreePlaces struct {
	w      *language.World
	queues []*model.Queue
	index  map[*model.Queue]int
	places []quota.Place
	paths  []ref.Val
	sums   []*quota.Sums // the sums, by roll-up
}

// PlaceQueues computes the positions of queues. parties contains their data in the same order. In a tree, a missing limit becomes infinite,
// because a missing amount reads as 0. It adds up nothing yet.
func PlaceQueues(
	w *language.World, t *QuotaTree, queues []*model.Queue, parties []quota.Party, root string, flat bool, total model.Resources,
) *TreePlaces {
	at := &TreePlaces{w: w, queues: queues, index: make(map[*model.Queue]int, len(queues)), paths: make([]ref.Val, len(queues))}
	if flat {
		at.places = quota.Flat(total, parties)
	} else {
		at.places = quota.Tree(root, total, parties)
		for i := range at.places {
			p := &at.places[i]
			for dim := range w.Cluster().Dims.Len() {
				if !p.Real.Has(dim) {
					p.Real.Set(dim, math.Inf(1))
				}
			}
		}
	}
	for i, q := range queues {
		at.index[q] = i
		path := make([]ref.Val, len(at.places[i].Path))
		for k, on := range at.places[i].Path {
			path[k] = w.QueueView(queues[on])
		}
		at.paths[i] = language.List(path)
	}
	for range t.RollUps {
		at.sums = append(at.sums, quota.NewSums(at.places))
	}
	return at
}

// Fail records why a queue's parents do not lead to the root, in addition to the tree's own findings. The queue may then use nothing.
func (at *TreePlaces) Fail(i int, problem string) {
	if problem != "" {
		at.places[i].Problem = problem
	}
	if at.places[i].Problem != "" {
		at.places[i].Real = nil
	}
}

// Add sets the amount of a queue for a roll-up, and reports whether it changed.
func (at *TreePlaces) Add(rollUp, i int, r model.Resources) bool { return at.sums[rollUp].Set(i, r) }

// Read returns a computed field of the tree for a queue.
func (at *TreePlaces) Read(x *Attribute, q *model.Queue) ref.Val {
	i, ok := at.index[q]
	if !ok {
		return types.NewErr("there is no queue %q any more", q.Name)
	}
	return x.part(at, i)
}
