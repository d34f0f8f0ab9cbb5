package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

const (
	// mostFound is the maximum number of objects in a search result.
	mostFound = 50
	// mostOnNode is the maximum number of listed pods of a node.
	mostOnNode = 250
)

// queueDetail is a queue over time, with its waiting jobs. The amounts belong to the newest elements of Times.
type queueDetail struct {
	Name      string      `json:"name"`
	Times     []int64     `json:"times"` // seconds since 1970
	Allocated [][]float32 `json:"allocated"`
	Deserved  [][]float32 `json:"deserved"` // -1: unknown
	Line      lineView    `json:"line"`
	Commands  []string    `json:"commands"`
}

// queueDetail returns the details of a queue, or false if it does not exist.
func (s *state) queueDetail(name string) (queueDetail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[name] == nil {
		return queueDetail{}, false
	}
	d := queueDetail{
		Name: name, Line: s.line(s.sum(), name), Times: []int64{}, Allocated: [][]float32{}, Deserved: [][]float32{},
		Commands: []string{
			"celsius queue get " + word(name), "celsius explain queue " + word(name), "celsius top queues",
			"kubectl describe queue.scheduling.volcano.sh " + word(name),
		},
	}
	for _, t := range s.history.times {
		d.Times = append(d.Times, t.Unix())
	}
	if p := s.history.queues[name]; p != nil {
		for r := range len(s.shown) {
			d.Allocated = append(d.Allocated, slices.Clone(p.allocated[r]))
			d.Deserved = append(d.Deserved, slices.Clone(p.deserved[r]))
		}
	}
	return d, true
}

// nodeDetail is a node with its pods.
type nodeDetail struct {
	Name     string    `json:"name"`
	Ready    bool      `json:"ready"`
	Cordoned bool      `json:"cordoned"`
	Why      string    `json:"why,omitempty"` // why it is not ready
	Since    time.Time `json:"since"`
	Used     []float64 `json:"used"`
	Offers   []float64 `json:"offers"`
	Taints   []string  `json:"taints"`
	Pods     []podView `json:"pods"`
	Total    int       `json:"total"`
	Commands []string  `json:"commands"`
}

// nodeDetail returns the details of a node, or false if it does not exist.
func (s *state) nodeDetail(name string) (nodeDetail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[name]
	if n == nil {
		return nodeDetail{}, false
	}
	d := nodeDetail{
		Name: name, Ready: n.ready, Cordoned: n.cordoned, Since: n.CreationTimestamp.Time, Offers: of(n.offers, s.shown, 0), Taints: n.taints,
		Pods: []podView{}, Commands: []string{"kubectl describe node " + word(name), "celsius explain node " + word(name), "celsius top nodes"},
	}
	if !n.ready {
		d.Why = n.why
	}
	var on []*pod
	var used amounts
	for _, p := range s.pods {
		if p.node == name && !p.over() {
			on, used = append(on, p), used.plus(p.asks)
		}
	}
	d.Used, d.Total = of(used, s.shown, 0), len(on)
	slices.SortFunc(on, func(a, b *pod) int { return strings.Compare(a.key(), b.key()) })
	for _, p := range on[:min(len(on), mostOnNode)] {
		d.Pods = append(d.Pods, s.pod(p))
	}
	return d, true
}

// found is an object in a search result.
type found struct {
	Kind      string `json:"kind"` // job, queue, node, pod or policy
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Says      string `json:"says,omitempty"`
	// Job is the job of a pod. The page shows the job instead of the pod.
	Job string `json:"job,omitempty"`
}

func (f *found) full() string {
	if f.Namespace == "" {
		return f.Name
	}
	return f.Namespace + "/" + f.Name
}

// findings are the best search results, with the total number.
type findings struct {
	Found []found `json:"found"`
	Total int     `json:"total"`
}

// search finds objects whose name or namespace contains a text. Names that begin with the text come first.
func (s *state) search(text string) findings {
	text = strings.ToLower(strings.TrimSpace(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	out := findings{Found: []found{}}
	if text == "" {
		return out
	}
	add := func(f found) {
		if strings.Contains(f.full(), text) {
			out.Total++
			out.Found = append(out.Found, f)
		}
		if len(out.Found) > 40*mostFound { // drop the worst of many results, so that a search stays inexpensive
			out.Found = best(out.Found, text)
		}
	}
	for _, q := range s.queues {
		add(found{Kind: "queue", Name: q.Name, Says: q.state})
	}
	for _, p := range s.policies {
		add(found{Kind: "policy", Name: p.Name})
	}
	for _, g := range s.groups {
		add(found{Kind: "job", Namespace: g.Namespace, Name: g.title(), Says: string(g.phase) + ", queue " + g.queue})
	}
	for _, n := range s.nodes {
		says := "ready"
		if !n.ready {
			says = "not ready"
		}
		add(found{Kind: "node", Name: n.Name, Says: says})
	}
	for _, p := range s.pods {
		f := found{Kind: "pod", Namespace: p.Namespace, Name: p.Name, Says: string(p.phase) + at(p.node)}
		if g := s.groups[p.Namespace+"/"+p.group]; g != nil {
			f.Job = g.title()
		}
		add(f)
	}
	out.Found = best(out.Found, text)
	return out
}

func at(node string) string {
	if node == "" {
		return ""
	}
	return " on " + node
}

func best(all []found, text string) []found {
	order := []string{"queue", "policy", "job", "node", "pod"}
	rank := func(f *found) int {
		switch {
		case f.Name == text || f.full() == text:
			return 0
		case strings.HasPrefix(f.Name, text):
			return 1
		}
		return 2
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(rank(&a)-rank(&b), slices.Index(order, a.Kind)-slices.Index(order, b.Kind), strings.Compare(a.full(), b.full()))
	})
	return all[:min(len(all), mostFound)]
}
