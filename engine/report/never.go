package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// Sizes are the amounts that the nodes of a cluster allocate when they are empty, in inner units by dimension.
type Sizes struct {
	Largest model.Resources // of each dimension, the most that one node allocates
	Sum     model.Resources // of all nodes together
	// Shapes are the amounts of the largest nodes: no other node has at least as much of every resource. It is nil if there are more than
	// mostShapes.
	Shapes []model.Resources
	// Kinds are the nodes by what they allocate. They are nil if there are too many kinds: see Kinds.
	Kinds []NodeKind
	// Apart states by which rules of the policy two pods cannot share a node.
	Apart Apart
	// Permitted returns the amounts of the nodes that the policy permits to a task by their labels and taints: see Permits. It is nil if
	// the policy reads neither.
	Permitted func(*model.Task) *Permitted
}

// mostShapes limits the number of shapes that a pod is compared with. Most clusters have few shapes.
const mostShapes = 64

// Shapes returns the value for Sizes.Shapes.
func Shapes(n *model.Nodes) []model.Resources {
	var out []model.Resources
	for row, node := range n.Rows {
		if node == nil {
			continue
		}
		if isWithinAny(n, row, out) {
			continue
		}
		next := n.AllocatableOf(int32(row))
		out = append(slices.DeleteFunc(out, func(shape model.Resources) bool {
			for dim := range n.Allocatable {
				if shape.Get(dim) > next.Get(dim) {
					return false
				}
			}
			return true
		}), next)
		if len(out) > mostShapes {
			return nil
		}
	}
	return out
}

// isWithinAny reports whether some shape has at least as much of everything as a node.
func isWithinAny(n *model.Nodes, row int, shapes []model.Resources) bool {
next:
	for _, shape := range shapes {
		for dim, column := range n.Allocatable {
			if column[row] > shape.Get(dim) {
				continue next
			}
		}
		return true
	}
	return false
}

// alikePods are pods of one job that request the same.
type alikePods struct {
	model.Wanted
	count int64
	// refused is true of pods that no node takes whichever pods leave: they have scheduling gates, or they request more than the nodes have
	// that are permitted to them. It is false of gated pods that request nothing, because these count as ready before they have a node.
	refused   bool
	permitted *Permitted // nil: not read
	key       string     // NodeRequirements, where permitted is read
}

// NeverStarts states why a job could never start on the nodes of the cluster, even if all of them were empty. It also states what would
// change that. It returns "" for any other job. It first checks for pods that fit no node: they request a resource that no node offers, or
// more than every node has, in one resource or in several together. Such pods are the cause only if the job cannot start without them, or
// if no pod that waits fits a node. Then it checks for a gang that is larger than all nodes together. Then it checks for a gang of which
// the nodes together hold too few pods. Last, it checks the same two amounts for the nodes that the pods may use by labels and taints.
func NeverStarts(c *model.Cluster, j *model.Job, sizes Sizes) string {
	if j.Orphan || len(c.Nodes.Index) == 0 {
		return ""
	}
	pods := waitingPods(c, j, nil)
	small := fitting(c, pods, sizes)
	return cmp.Or(fitsNoNode(c, keepingBack(j, pods, small), sizes), gangTooLarge(c, j, small, sizes), tooFewPlaces(c, j, sizes),
		permittedTooSmall(c, j, sizes))
}

// GangNeverStarts reports whether the pods of a job that must start together could never start, even if all nodes were empty. A pod that is
// not needed for that keeps no job from starting, however large it is. Pods with scheduling gates are known, but they do not count among
// those that can start: the scheduler places none of them before a user or a controller removes the gates, whichever pods leave. The same
// holds for pods to which the nodes that are large enough are not permitted by their labels or taints. NeverStarts states nothing of gates.
// A job is not admitted either if its minResources are more than all nodes together allocate.
func GangNeverStarts(c *model.Cluster, j *model.Job, sizes Sizes) bool {
	if j.Orphan || len(c.Nodes.Index) == 0 {
		return false
	}
	pods := waitingPods(c, j, sizes.Permitted)
	able := slices.DeleteFunc(fitting(c, pods, sizes), func(p alikePods) bool { return p.refused })
	all, roles := lacking(j, pods, able)
	return all || len(roles) > 0 || requestsMoreThanAll(j, sizes) || gangTooLarge(c, j, able, sizes) != "" ||
		tooFewPlaces(c, j, sizes) != "" || exceedsPermitted(c, j, able) != nil
}

// permittedExcess is what some pods of a gang request too much of the nodes that are permitted to them.
type permittedExcess struct {
	pods         int64 // that must start, of those with the same requirements
	dim          int
	request, all float64 // of the pods, and of the nodes together, in inner units
}

// exceedsPermitted considers the pods of a job that have the same requirements for nodes. It returns by how much those of them that must
// start exceed what the permitted nodes allocate together; nil if they do not. Pods with other requirements may start in their place,
// unless all of these must start too.
func exceedsPermitted(c *model.Cluster, j *model.Job, pods []alikePods) *permittedExcess {
	missing, roles := missingPods(j)
	seen := map[string]bool{}
	for i := range pods {
		first := &pods[i]
		if first.permitted == nil || seen[first.key] {
			continue
		}
		seen[first.key] = true
		var group, others []alikePods
		for _, p := range pods {
			if p.permitted != nil && p.key == first.key {
				group = append(group, p)
			} else {
				others = append(others, p)
			}
		}
		inRoles := int64(0)
		for _, r := range roles {
			inRoles += max(r.missing-countOf(others, r.Name), 0)
		}
		must := max(missing-countOf(others, ""), inRoles)
		dim, sum := gangExceeds(c, must, group, func(dim int) (float64, bool) { return first.permitted.Sum.Get(dim), true })
		if dim >= 0 {
			return &permittedExcess{must, dim, sum, first.permitted.Sum.Get(dim)}
		}
	}
	return nil
}

// permittedTooSmall states why the nodes that the pods of a job may use by their labels and taints never suffice: there are none for a pod,
// each is too small for a pod, or all of them together are too small for the pods that must start together.
func permittedTooSmall(c *model.Cluster, j *model.Job, sizes Sizes) string {
	if sizes.Permitted == nil {
		return ""
	}
	pods := waitingPods(c, j, sizes.Permitted)
	able := slices.DeleteFunc(fitting(c, pods, sizes), func(p alikePods) bool { return p.refused })
	for _, p := range keepingBack(j, pods, able) {
		if text := p.tooLargeForPermitted(c); text != "" {
			return text
		}
	}
	x := exceedsPermitted(c, j, able)
	if x == nil {
		return ""
	}
	who := "the " + counted(x.pods, "pod") + " that must start together"
	if missing, _ := missingPods(j); x.pods < missing {
		who = fmt.Sprintf("%d of the %s that must start together", x.pods, counted(missing, "pod"))
	}
	request, all := c.Dims.AmountTexts(x.dim, x.request, x.all)
	return fmt.Sprintf("%s request %s %s, but the nodes that their node selector, node affinity and tolerations permit have %s together: the "+
		"job can never start; request less, lower minAvailable, permit other nodes, or add nodes", who, c.Dims.Name(x.dim), request, all)
}

// tooLargeForPermitted states that no node is permitted to pods, or that they request more of a dimension than each node that is.
func (p *alikePods) tooLargeForPermitted(c *model.Cluster) string {
	if p.permitted == nil {
		return ""
	}
	if len(p.permitted.Sum) == 0 {
		return fmt.Sprintf("the node selector, node affinity and tolerations of %s permit no node: it can never start; change them, or the "+
			"labels and taints of the nodes", p.name())
	}
	for _, dim := range c.Nodes.Dims() {
		if !p.Request.Has(dim) || p.Request[dim] <= p.permitted.Largest.Get(dim)+model.Slack {
			continue
		}
		request, largest := c.Dims.AmountTexts(dim, p.Request[dim], p.permitted.Largest.Get(dim))
		return fmt.Sprintf("%s requests %s %s, but the largest node that its node selector, node affinity and tolerations permit has %s: it "+
			"can never start; request less, permit other nodes, or add a larger node", p.name(), c.Dims.Name(dim), request, largest)
	}
	return ""
}

// requestsMoreThanAll reports whether the minResources of a job that has not started are more of a resource than all nodes together
// allocate.
func requestsMoreThanAll(j *model.Job, sizes Sizes) bool {
	if missing, _ := missingPods(j); missing < 1 || !j.HasMinResources {
		return false
	}
	for dim := range j.MinResources {
		if j.MinResources.Has(dim) && j.MinResources[dim] > sizes.Sum.Get(dim)+model.Slack {
			return true
		}
	}
	return false
}

// KeptBackBy returns the roles of the pods that keep a job from starting because they fit no node, even if the nodes were empty. A pod that
// fits no node is not the cause why its job waits unless its role is among them.
func KeptBackBy(c *model.Cluster, j *model.Job, sizes Sizes) (roles []string) {
	if j.Orphan || len(c.Nodes.Index) == 0 {
		return nil
	}
	pods := waitingPods(c, j, nil)
	for _, p := range keepingBack(j, pods, fitting(c, pods, sizes)) {
		roles = append(roles, p.Role)
	}
	return roles
}

// fitting returns those of some pods of which each fits a node, if the nodes were empty.
func fitting(c *model.Cluster, pods []alikePods, sizes Sizes) (small []alikePods) {
	for i := range pods {
		if fitsNoNode(c, pods[i:i+1], sizes) == "" {
			small = append(small, pods[i])
		}
	}
	return small
}

// lacking reports whether a job cannot start because too few of its pods can start, and which of its roles have too few of them. able are
// the pods that can start. A job whose pods are not all known is not reported, because the others may be able to start.
func lacking(j *model.Job, pods, able []alikePods) (all bool, roles []string) {
	lacks := func(missing int64, role string) bool {
		return missing > 0 && countOf(pods, role) >= missing && countOf(able, role) < missing
	}
	missing, least := missingPods(j)
	for _, r := range least {
		if lacks(r.missing, r.Name) {
			roles = append(roles, r.Name)
		}
	}
	return lacks(missing, ""), roles
}

// keepingBack returns the pods among which are those that keep a job from starting, because they fit no node. small are the pods that fit
// one. It returns none if the job can start without the pods that fit no node.
func keepingBack(j *model.Job, pods, small []alikePods) []alikePods {
	all, roles := lacking(j, pods, small)
	switch {
	case len(roles) > 0:
		return slices.DeleteFunc(slices.Clone(pods), func(p alikePods) bool { return !slices.Contains(roles, p.Role) })
	case all, len(small) == 0:
		return pods
	}
	return nil
}

// countOf counts the pods of a role; "" means every role.
func countOf(pods []alikePods, role string) (count int64) {
	for i := range pods {
		if role == "" || pods[i].Role == role {
			count += pods[i].count
		}
	}
	return count
}

// fitsNoNode finds the first pod that would fit no node even if the nodes were empty, and states why. It returns "" if each pod fits a
// node.
func fitsNoNode(c *model.Cluster, pods []alikePods, sizes Sizes) string {
	for _, why := range []func(*model.Cluster, *alikePods, int, Sizes) string{notOffered, tooLarge} {
		for i := range pods {
			for _, dim := range c.Nodes.Dims() {
				if text := why(c, &pods[i], dim, sizes); text != "" {
					return text
				}
			}
		}
	}
	for i := range pods {
		if text := fitsNoShape(c, &pods[i], sizes); text != "" {
			return text
		}
	}
	return ""
}

// waitingPods returns the pods of a job that have no node, and those that do not exist yet. It groups them by role, request, and whether
// they are refused. permitted is as in Sizes.
func waitingPods(c *model.Cluster, j *model.Job, permitted func(*model.Task) *Permitted) []alikePods {
	var out []alikePods
	add := func(p alikePods) {
		for i := range out {
			if out[i].Role == p.Role && out[i].refused == p.refused && out[i].key == p.key && out[i].Request.Equal(p.Request) {
				out[i].count += p.count
				return
			}
		}
		out = append(out, p)
	}
	for _, t := range j.Tasks {
		if t.Waits() && !t.Foreign {
			p := alikePods{Wanted: model.Wanted{Role: t.Role, Request: t.Request, Spec: &t.Object.Spec}, count: 1}
			p.refused = t.Gated && !t.BestEffort
			if permitted != nil {
				p.permitted, p.key = permitted(t), t.NodeRequirements()
				p.refused = p.refused || !p.permitted.holds(t.Request, c.Nodes.Dims())
			}
			add(p)
		}
	}
	for wanted, count := range c.Missing(j) {
		add(alikePods{Wanted: wanted, count: count})
	}
	return out
}

// name returns the name of the pods in a message.
func (p *alikePods) name() string {
	name := "each pod"
	if p.count == 1 {
		name = "the pod"
	}
	if p.Role != "" {
		name += " of task " + p.Role
	}
	return name
}

// notOffered states that pods request a resource that no node offers.
func notOffered(c *model.Cluster, p *alikePods, dim int, sizes Sizes) string {
	if !p.Request.Has(dim) || p.Request[dim] <= model.Slack || sizes.Largest.Get(dim) > 0 {
		return ""
	}
	return fmt.Sprintf("%s, which %s requests", NotOffered(c.Dims, dim, sizes.Largest), p.name())
}

// NotOffered states that no node offers a resource, and which offered resource has a similar name.
func NotOffered(dims *model.Dims, dim int, largest model.Resources) string {
	var offered []string
	for other := range dims.Len() {
		if largest.Get(other) > 0 {
			offered = append(offered, dims.Name(other))
		}
	}
	slices.Sort(offered)
	text := "no node offers " + dims.Name(dim)
	if near := source.Nearest(dims.Name(dim), offered); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return text
}

// tooLarge states that pods request more of a dimension than the largest node allocates, and through which init container.
func tooLarge(c *model.Cluster, p *alikePods, dim int, sizes Sizes) string {
	if !p.Request.Has(dim) || p.Request[dim] <= sizes.Largest.Get(dim)+model.Slack {
		return ""
	}
	who, amount := p.name(), p.Request[dim]
	if name, most := initContainer(c.Dims, p.Spec, dim); most > sizes.Largest.Get(dim)+model.Slack {
		who, amount = "init container "+name+" of "+who, most
	}
	request, largest := c.Dims.AmountTexts(dim, amount, sizes.Largest.Get(dim))
	return fmt.Sprintf("%s requests %s %s, but the largest node has %s: it can never start; request less, or add a larger node",
		who, c.Dims.Name(dim), request, largest)
}

// initContainer returns the init container of a pod that requests the most of a dimension; "" if there is none.
func initContainer(dims *model.Dims, pod *corev1.PodSpec, dim int) (name string, most float64) {
	if pod == nil {
		return "", 0
	}
	for i := range pod.InitContainers {
		container := &pod.InitContainers[i]
		resource := corev1.ResourceName(dims.Name(dim))
		q, ok := container.Resources.Requests[resource]
		if !ok { // a limit without a request is the request
			q, ok = container.Resources.Limits[resource]
		}
		if ok && dims.Amount(dim, q) > most {
			name, most = container.Name, dims.Amount(dim, q)
		}
	}
	return name, most
}

// fitsNoShape states that each resource that pods request fits some node, but all of them together fit no node.
func fitsNoShape(c *model.Cluster, p *alikePods, sizes Sizes) string {
	shapes := sizes.Shapes
	if shapes == nil {
		for _, kind := range sizes.Kinds {
			shapes = append(shapes, kind.Allocatable)
		}
	}
	if len(shapes) < 2 {
		return ""
	}
	lacking := map[int]bool{}
	for _, shape := range shapes {
		fits := true
		for _, dim := range c.Nodes.Dims() {
			if p.Request.Has(dim) && p.Request[dim] > shape.Get(dim)+model.Slack {
				lacking[dim], fits = true, false
			}
		}
		if fits {
			return ""
		}
	}
	var amounts []string
	for _, dim := range slices.Sorted(maps.Keys(lacking)) {
		amounts = append(amounts, c.Dims.Name(dim)+" "+c.Dims.AmountText(dim, p.Request[dim]))
	}
	return fmt.Sprintf("%s requests %s, but no node has all of that: it can never start; request less, or add a larger node", p.name(),
		listed(amounts))
}

// gangTooLarge states that the pods that must start together request more of a dimension than all nodes together allocate.
func gangTooLarge(c *model.Cluster, j *model.Job, pods []alikePods, sizes Sizes) string {
	missing, _ := missingPods(j)
	dim, sum := gangExceeds(c, missing, pods, func(dim int) (float64, bool) { return sizes.Sum.Get(dim), true })
	if dim < 0 {
		return ""
	}
	request, all := c.Dims.AmountTexts(dim, sum, sizes.Sum.Get(dim))
	return fmt.Sprintf("the %s that must start together request %s %s, but all nodes together have %s: the job can never start; "+
		"request less, lower minAvailable, or add nodes", counted(missing, "pod"), c.Dims.Name(dim), request, all)
}

// gangExceeds returns the first dimension of which some number of pods request more than a limit, and how much they request; -1: there is
// none. It takes the pods with the smallest requests, so that it never names a gang that could start.
func gangExceeds(
	c *model.Cluster, missing int64, pods []alikePods, limit func(dim int) (most float64, limited bool),
) (dim int, sum float64) {
	if missing < 1 {
		return -1, 0
	}
	for _, dim := range c.Nodes.Dims() {
		most, limited := limit(dim)
		if !limited {
			continue
		}
		slices.SortStableFunc(pods, func(a, b alikePods) int { return cmp.Compare(a.Request.Get(dim), b.Request.Get(dim)) })
		sum, left := 0.0, missing
		for i := range pods {
			n := min(left, pods[i].count)
			sum += float64(n) * pods[i].Request.Get(dim)
			left -= n
		}
		if left == 0 && sum > most+model.Slack {
			return dim, sum
		}
	}
	return -1, 0
}

// QueueNeverHolds applies to a job whose pods that must start together request more than the capability of a queue. It states that the job
// could not start even if the queue were empty, and what would change that. It returns "" for any other job.
func QueueNeverHolds(c *model.Cluster, j *model.Job, q *model.Queue) string {
	limit := func(dim int) (float64, bool) { return q.Capability.Get(dim), q.Capability.Has(dim) }
	missing, _ := missingPods(j)
	dim, sum := gangExceeds(c, missing, waitingPods(c, j, nil), limit)
	if dim < 0 {
		return ""
	}
	who := "the pod requests"
	if missing > 1 {
		who = fmt.Sprintf("the %s that must start together request", counted(missing, "pod"))
	}
	request, most := c.Dims.AmountTexts(dim, sum, q.Capability.Get(dim))
	return fmt.Sprintf("%s %s %s, but queue %s may hold at most %s: the job can never start; request less, lower minAvailable, use another "+
		"queue, or raise the capability of queue %s", who, c.Dims.Name(dim), request, q.Name, most, q.Name)
}

// counted returns a number with its noun.
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strings.TrimSpace(fmt.Sprint(n, " ", noun))
}
