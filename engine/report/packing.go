package report

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// NodeKind is a group of nodes that allocate the same amounts.
type NodeKind struct {
	Allocatable model.Resources
	// Named reports whether the nodes have the label kubernetes.io/hostname. Terms of that topology key do not apply to other nodes.
	Named bool
	Count int64
}

// Equal reports whether two kinds are the same, and have as many nodes.
func (k NodeKind) Equal(other NodeKind) bool {
	return k.Named == other.Named && k.Count == other.Count && k.Allocatable.Equal(other.Allocatable)
}

// Kinds returns the value for Sizes.Kinds. Machines that differ by a few bytes of memory can make more than mostShapes kinds of nodes.
// Kinds then rounds the amounts up, so that places in these kinds are an upper bound. It is nil if there are still more kinds.
func Kinds(n *model.Nodes) []NodeKind {
	if kinds, ok := kindsBy(n, func(v float64) float64 { return v }); ok {
		return kinds
	}
	kinds, _ := kindsBy(n, roundedUp)
	return kinds
}

// kindsBy returns the kinds of nodes by their rounded amounts; false: there are too many kinds.
func kindsBy(n *model.Nodes, rounded func(float64) float64) (kinds []NodeKind, ok bool) {
	index := map[string]int{}
	var key []byte
	var amounts model.Resources // of the present row
	i := 0
	for row, node := range n.Rows {
		if node == nil {
			continue
		}
		_, named := node.Labels[corev1.LabelHostname]
		amounts = amounts[:0]
		for _, column := range n.Allocatable {
			amount := 0.0
			if column[row] == column[row] {
				amount = rounded(column[row])
			}
			amounts = append(amounts, amount)
		}
		if len(kinds) > 0 && kinds[i].Named == named && slices.Equal(kinds[i].Allocatable, amounts) { // equal to the previous row, like most rows
			kinds[i].Count++
			continue
		}
		key = strconv.AppendBool(key[:0], named)
		for _, amount := range amounts {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(amount))
		}
		var known bool
		if i, known = index[string(key)]; !known {
			if i = len(kinds); i == mostShapes {
				return nil, false
			}
			index[string(key)], kinds = i, append(kinds, NodeKind{Allocatable: amounts.Clone(), Named: named})
		}
		kinds[i].Count++
	}
	return kinds, true
}

// roundedUp rounds an amount up to 8 significant bits, which is by less than 1 percent.
func roundedUp(v float64) float64 {
	if v <= 0 {
		return v
	}
	fraction, exponent := math.Frexp(v)
	return math.Ldexp(math.Ceil(math.Ldexp(fraction, 8)), exponent-8)
}

// Apart states by which rules of a policy two pods cannot share a node.
type Apart struct {
	HostPorts   bool // pods that use the same host port
	PodAffinity bool // pods of which one has a required anti-affinity to the other
}

// ApartBy returns the rules of a policy. filters is Policy.Filters.
func ApartBy(filters func(function string, implied ...string) bool) Apart {
	return Apart{HostPorts: filters("portsFree"), PodAffinity: filters("affinityFits", "task.hasPeerTerms")}
}

// similarPods are pods of one job that request the same, and that cannot share a node for the same reason.
type similarPods struct {
	role    string
	request model.Resources
	count   int64
	// anywhere is true of pods for which no known limit restricts how many a node can hold.
	anywhere bool
	apart    apart

	ports []model.HostPort
	terms string // see apartTerms

	roles []string // of pods of a group: all their roles
}

// apart states why pods cannot share a node. It is the zero value if they can.
type apart struct {
	port  model.HostPort
	terms string
}

// tooFewPlaces applies to pods that must start together, all of a job or of a role. It states that the cluster can hold too few of them
// even if all nodes were empty. It only considers how many of these pods each node can hold, so that it never names a gang that could
// start.
func tooFewPlaces(c *model.Cluster, j *model.Job, sizes Sizes) string {
	missing, roles := missingPods(j)
	roles = slices.DeleteFunc(roles, func(r missingRole) bool { return r.missing < 2 })
	if sizes.Kinds == nil || missing < 2 && len(roles) == 0 { // the callers have checked whether each pod fits some node
		return ""
	}
	gang := packing{dims: c.Dims, kinds: sizes.Kinds, pods: gangPods(c, j, sizes.Apart)}
	if text := gang.tooFew(missing, "pods", "minAvailable"); text != "" {
		return text
	}
	for _, r := range roles {
		one := gang
		one.pods = slices.DeleteFunc(slices.Clone(gang.pods), func(p similarPods) bool { return p.role != r.Name })
		if text := one.tooFew(r.missing, "pods of task "+r.Name, "minAvailable of task "+r.Name); text != "" {
			return text
		}
	}
	return ""
}

// missingRole is a role and how many of its pods must start together.
type missingRole struct {
	*model.Role
	missing int64
}

// missingPods returns how many pods of a job must start together, of all roles and of each that needs any.
func missingPods(j *model.Job) (missing int64, roles []missingRole) {
	unknown := j.Counts[model.Unknown] // unknown pods may run again
	for _, r := range j.Roles {
		n := r.Min - r.Holding() - r.Counts[model.Succeeded] - unknown
		if j.MinMember >= j.RoleMinTotal && n > 0 { // the minimums of roles count only if minAvailable covers them
			roles = append(roles, missingRole{r, n})
		}
	}
	return j.MinMember - j.Ready() - unknown, roles
}

// gangPods returns the pods of a job that have no node, and those that do not exist yet, by role. Ports and terms of the latter are
// unknown.
func gangPods(c *model.Cluster, j *model.Job, by Apart) []similarPods {
	var out []similarPods
	var template *model.Template // of the last pod: pods that share it have the same labels if they have terms
	terms := ""
	for _, t := range j.Tasks {
		if !t.Waits() || t.Foreign {
			continue
		}
		p := similarPods{role: t.Role, request: t.Request, count: 1}
		p.anywhere = t.BestEffort // it counts as ready before it has a node
		if by.HostPorts {
			p.ports = t.HostPorts
		}
		if by.PodAffinity && t.PodTerms != nil {
			if t.Template != template {
				template, terms = t.Template, apartTerms(t)
			}
			p.terms = terms
		}
		out = withPods(out, p)
	}
	for wanted, count := range c.Missing(j) {
		p := similarPods{role: wanted.Role, request: wanted.Request, count: count}
		p.anywhere = wanted.Spec == nil || p.request.IsEmpty() // without a spec, the request is the mean of all pods of the job
		out = withPods(out, p)
	}
	assignApart(out)
	return out
}

// withPods adds pods to similar pods of the job, or to the list if there are none.
func withPods(to []similarPods, p similarPods) []similarPods {
	for i := range to {
		if o := &to[i]; o.role == p.role && o.terms == p.terms && o.anywhere == p.anywhere && slices.Equal(o.ports, p.ports) &&
			o.request.Equal(p.request) {
			o.count += p.count
			return to
		}
	}
	return append(to, p)
}

// apartTerms identifies the terms and the labels of a pod with a certain anti-affinity. It is required, and keeps all pods with the same
// terms and labels off the pod's node. It is "" for other pods. It does not read the labels of namespaces, which can change while the job
// does not.
func apartTerms(t *model.Task) string {
	for i := range t.PodTerms.RequiredAntiAffinity {
		term := &t.PodTerms.RequiredAntiAffinity[i]
		who := &term.Who
		inNamespace := slices.Contains(who.Namespaces, t.Namespace) || who.ByLabels != nil && who.ByLabels.Empty()
		if term.TopologyKey == corev1.LabelHostname && inNamespace && who.HasLabels(t.Labels) {
			return fmt.Sprint(i, " ", t.PodTerms.Key)
		}
	}
	return ""
}

// assignApart gives each of some pods one reason why it cannot share a node with others. Of several host ports it takes the one that most
// pods use.
func assignApart(pods []similarPods) {
	var users map[model.HostPort]int64
	for i := range pods {
		if users == nil && len(pods[i].ports) > 0 {
			users = map[model.HostPort]int64{}
		}
		for _, port := range pods[i].ports {
			users[port] += pods[i].count
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.anywhere {
			continue
		}
		p.apart.terms = p.terms
		if len(p.ports) > 0 {
			p.apart = apart{port: slices.MaxFunc(p.ports, func(a, b model.HostPort) int { return cmp.Compare(users[a], users[b]) })}
		}
	}
}

// packing contains the pods that must start together, and the nodes that have to hold them.
type packing struct {
	dims  *model.Dims
	kinds []NodeKind
	pods  []similarPods
}

// tooFew states that the nodes can hold fewer of the pods than must start together. It is "" if they can hold enough, or if more pods may
// come than are known.
func (x packing) tooFew(missing int64, pods, minimum string) string {
	if len(x.pods) == 1 && x.mostOf(x.pods) >= missing { // the usual case
		return ""
	}
	groups := x.groups()
	known, most := int64(0), int64(0)
	for _, group := range groups {
		for i := range group {
			known += group[i].count
		}
		most += x.mostOf(group)
	}
	if known < missing || most >= missing {
		return ""
	}
	var causes, remedies []string
	for _, group := range groups {
		of, remedy := x.causes(group, len(groups) == 1)
		causes = append(causes, of...)
		if len(of) > 0 && !slices.Contains(remedies, remedy) {
			remedies = append(remedies, remedy)
		}
	}
	return fmt.Sprintf("the nodes can hold at most %d of the %d %s that must start together, because %s: the job can never start; %s, "+
		"lower %s, or add nodes", most, missing, pods, strings.Join(causes, ", and "), strings.Join(remedies, ", "), minimum)
}

// groups divides the pods: pods of one group cannot share a node, or request the same.
func (x packing) groups() (out [][]similarPods) {
	for _, p := range x.pods {
		p.roles = []string{p.role}
		i := slices.IndexFunc(out, func(group []similarPods) bool {
			return group[0].apart == p.apart && group[0].anywhere == p.anywhere && (p.apart != apart{} || group[0].request.Equal(p.request))
		})
		if i < 0 {
			out = append(out, []similarPods{p})
			continue
		}
		same := slices.IndexFunc(out[i], func(o similarPods) bool { return o.request.Equal(p.request) })
		if same < 0 {
			out[i] = append(out[i], p)
			continue
		}
		o := &out[i][same]
		o.count += p.count
		if !slices.Contains(o.roles, p.role) {
			o.roles = append(o.roles, p.role)
		}
	}
	return out
}

// mostOf returns how many pods of a group the nodes can hold at most.
func (x packing) mostOf(group []similarPods) (most int64) {
	least := group[0].request
	for i := range group {
		p := &group[i]
		if p.anywhere {
			most += p.count
			continue
		}
		most += min(p.count, x.places(p.request, p.apart))
		least = least.Min(p.request)
	}
	if group[0].apart != (apart{}) {
		most = min(most, x.places(least, group[0].apart))
	}
	return most
}

// places returns how many pods that request an amount the nodes can hold.
func (x packing) places(request model.Resources, by apart) int64 {
	sum := 0.0
	for i := range x.kinds {
		kind := &x.kinds[i]
		each := placesOn(kind, request)
		if by.terms != "" && kind.Named || by.port != (model.HostPort{}) {
			each = min(each, 1)
		}
		sum += each * float64(kind.Count)
	}
	return int64(min(sum, 1<<53))
}

// placesOn returns how many pods that request an amount one node can hold.
func placesOn(kind *NodeKind, request model.Resources) float64 {
	most := math.Inf(1)
	for dim := range request {
		if request.Has(dim) {
			most = min(most, placesIn(kind, request, dim))
		}
	}
	return most
}

// placesIn does what placesOn does, for pods that request only one dimension.
func placesIn(kind *NodeKind, request model.Resources, dim int) float64 {
	want, has := request.Get(dim), kind.Allocatable.Get(dim)+model.Slack
	switch {
	case want > has:
		return 0
	case want > 0:
		return math.Floor(has / want)
	}
	return math.Inf(1)
}

// causes states why the nodes cannot hold all pods of a group, and what would change that. There are none if they can. alone is true if all
// pods are of the group.
func (x packing) causes(group []similarPods, alone bool) (causes []string, remedy string) {
	if group[0].anywhere {
		return nil, ""
	}
	sharing := int64(0) // number of pods that the nodes could hold if all of them could share nodes
	for i := range group {
		sharing += min(group[i].count, x.places(group[i].request, apart{}))
	}
	if x.mostOf(group) < sharing {
		who := each(group, alone)
		over := slices.DeleteFunc(slices.Clone(group), func(p similarPods) bool { return p.count <= x.places(p.request, p.apart) })
		if len(over) > 0 {
			who = each(over, alone && len(over) == len(group))
		}
		if by := group[0].apart; by.terms == "" {
			return []string{fmt.Sprintf("%s uses host port %d of its node", who, by.port.Port)}, "remove the host port"
		}
		return []string{"the anti-affinity of " + who + " keeps the others off its node"}, "remove the anti-affinity"
	}
	for i := range group {
		if p := &group[i]; p.count > x.places(p.request, apart{}) {
			causes = append(causes, each(group[i:i+1], alone && len(group) == 1)+" requests "+x.scarce(p.request))
		}
	}
	return causes, "request less"
}

// scarce lists the amounts of a request that limit how many pods the nodes can hold, among the nodes that can hold any.
func (x packing) scarce(request model.Resources) string {
	var dims []int
	for i := range x.kinds {
		most := placesOn(&x.kinds[i], request)
		for dim := range request {
			if most > 0 && request.Has(dim) && placesIn(&x.kinds[i], request, dim) == most && !slices.Contains(dims, dim) {
				dims = append(dims, dim)
			}
		}
	}
	var amounts []string
	for _, dim := range x.dims.Sorted() {
		if slices.Contains(dims, dim) {
			amounts = append(amounts, x.dims.Name(dim)+" "+x.dims.AmountText(dim, request[dim]))
		}
	}
	return listed(amounts)
}

// each returns the name of one of some pods in a message.
func each(pods []similarPods, alone bool) string {
	if alone {
		return "each"
	}
	var roles []string
	count := int64(0)
	for i := range pods {
		count += pods[i].count
		for _, role := range pods[i].roles {
			if !slices.Contains(roles, role) {
				roles = append(roles, role)
			}
		}
	}
	switch {
	case slices.Contains(roles, ""):
		return fmt.Sprintf("each of %d pods", count)
	case len(roles) == 1:
		return "each pod of task " + roles[0]
	}
	return "each pod of tasks " + listed(roles)
}

// listed joins names with commas, and the last one with "and".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
