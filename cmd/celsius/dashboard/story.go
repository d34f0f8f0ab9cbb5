package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// The limits of a story.
const (
	mostPods     = 100
	mostFailures = 10
	mostEvents   = 100
	// mostAsked is the number of pods whose events are read.
	mostAsked = 5
)

// storyView describes a job from its creation to its end.
type storyView struct {
	Job      jobView        `json:"job"`
	Entries  []entry        `json:"entries"`
	Pods     []podView      `json:"pods"`
	Total    int            `json:"total"`
	Counts   map[string]int `json:"counts"` // pods by phase; those without a node are "Waiting"
	Retries  int32          `json:"retries,omitempty"`
	Commands []string       `json:"commands"`
	// Lacks lists what could not be read.
	Lacks []string `json:"lacks"`
}

// entry is one occurrence in a story.
type entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	Says string    `json:"says,omitempty"`
	Bad  bool      `json:"bad,omitempty"`
}

// podView is a pod of a job, or on a node.
type podView struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Job       string `json:"job,omitempty"`
	Node      string `json:"node,omitempty"`
	Phase     string `json:"phase"`
	Says      string `json:"says,omitempty"` // why it waits, is on its node, or failed
}

// groupNamed finds a job by the name of its Job or of its PodGroup. The caller must hold the lock.
func (s *state) groupNamed(namespace, name string) *group {
	if g := s.groups[namespace+"/"+name]; g != nil {
		return g
	}
	var found *group
	for _, g := range s.groups {
		if g.Namespace == namespace && g.job == name && (found == nil || byAge(g, found) > 0) { // the newest, if a Job was created again
			found = g
		}
	}
	return found
}

// story returns the story of a job without its events. asks are the names of the objects whose events belong to it. ok is false if the job
// does not exist.
func (s *state) story(namespace, name string) (v storyView, asks []string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, j := s.groupNamed(namespace, name), s.jobs[namespace+"/"+name]
	if g == nil && j == nil {
		return v, nil, false
	}
	v = storyView{Lacks: []string{}, Counts: map[string]int{}, Pods: []podView{}}
	var mine []*pod
	sum := &gang{}
	for _, p := range s.pods {
		if p.Namespace == namespace && (g != nil && p.group == g.Name || j != nil && p.job == j.Name) {
			mine = append(mine, p)
			sum.add(p)
		}
	}
	slices.SortFunc(mine, func(a, b *pod) int { return cmp.Or(worth(b)-worth(a), strings.Compare(a.Name, b.Name)) })
	if g != nil {
		v.Job = s.job(g, sum)
		asks = append(asks, g.Name)
		v.Entries = append(v.Entries, g.entries()...)
	} else {
		v.Job = j.withoutGroup()
		v.Job.Pods, v.Job.Placed = sum.pods, sum.placed
	}
	if j != nil {
		v.Job.Phase, v.Retries = cmp.Or(string(j.state.Phase), v.Job.Phase), j.retries
		asks = append(asks, j.Name)
		v.Entries = append(v.Entries, j.entries()...)
	}
	v.Entries = append(v.Entries, podEntries(mine)...)
	v.Total = len(mine)
	for i, p := range mine {
		x := s.pod(p)
		v.Counts[x.Phase]++
		if i < mostPods {
			v.Pods = append(v.Pods, x)
		}
		if i < mostAsked {
			asks = append(asks, p.Name)
		}
	}
	v.Commands = jobCommands(v.Job, g, j)
	return v, slices.Compact(asks), true
}

// worth returns a rank. Pods with a higher rank are more interesting and come first.
func worth(p *pod) int {
	switch {
	case p.phase == corev1.PodFailed:
		return 3
	case p.node == "":
		return 2
	case p.phase == corev1.PodPending:
		return 1
	}
	return 0
}

func jobCommands(v jobView, g *group, j *job) []string {
	name, in := word(v.Name), " -n "+word(v.Namespace)
	var out []string
	if j != nil {
		out = append(out, "celsius job view "+name+in, "kubectl get vcjob "+name+in+" -o yaml")
	}
	out = append(out, "celsius explain job "+name+in)
	if g != nil {
		out = append(out, "kubectl describe podgroup.scheduling.volcano.sh "+word(g.Name)+in,
			"kubectl get events"+in+" --field-selector involvedObject.name="+word(g.Name))
	}
	if j != nil {
		out = append(out, "celsius pod list -j "+name+in)
	}
	return out
}

// word quotes a name so that a shell reads it as one word, whatever it contains.
func word(name string) string {
	plain := func(c rune) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' }
	if strings.TrimFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

func (g *group) entries() []entry {
	says := fmt.Sprintf("queue %s, %d must start together", g.queue, max(g.min, 1))
	out := []entry{{At: g.CreationTimestamp.Time, What: "PodGroup made", Says: says}}
	for i := range g.conditions {
		c := &g.conditions[i]
		if c.Status != corev1.ConditionTrue {
			continue
		}
		what, bad := "scheduled", false
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType {
			what, bad = "cannot be scheduled", true
		}
		out = append(out, entry{c.LastTransitionTime.Time, what, cmp.Or(c.Message, c.Reason), bad})
	}
	return out
}

func (j *job) entries() []entry {
	out := []entry{{At: j.CreationTimestamp.Time, What: "Job made"}}
	for i, c := range j.entered {
		if c.LastTransitionTime == nil {
			continue
		}
		bad := c.Status == batchv1alpha1.Failed || c.Status == batchv1alpha1.Aborted || c.Status == batchv1alpha1.Terminated
		e := entry{At: c.LastTransitionTime.Time, What: "Job " + string(c.Status), Bad: bad}
		if i == len(j.entered)-1 && c.Status == j.state.Phase {
			e.Says = cmp.Or(j.state.Message, j.state.Reason)
		}
		out = append(out, e)
	}
	return out
}

// podEntries summarizes many pods: when the first and the last of them reached each step.
func podEntries(mine []*pod) (out []entry) {
	for _, step := range []struct {
		what string
		at   func(*pod) time.Time
	}{
		{"made", func(p *pod) time.Time { return p.CreationTimestamp.Time }},
		{"bound", func(p *pod) time.Time { return p.placed }},
		{"started", func(p *pod) time.Time { return p.started }},
		{"ended", func(p *pod) time.Time { return p.ended }},
	} {
		var times []time.Time
		for _, p := range mine {
			if at := step.at(p); !at.IsZero() {
				times = append(times, at)
			}
		}
		if len(times) == 0 {
			continue
		}
		slices.SortFunc(times, time.Time.Compare)
		first, newest := times[0], times[len(times)-1]
		switch {
		case len(mine) == 1:
			out = append(out, entry{At: first, What: "pod " + step.what})
		case first.Equal(newest):
			out = append(out, entry{At: first, What: fmt.Sprintf("%d of %d pods %s", len(times), len(mine), step.what)})
		default:
			out = append(out, entry{At: first, What: fmt.Sprintf("first of %d pods %s", len(mine), step.what)},
				entry{At: newest, What: fmt.Sprintf("%d of %d pods %s", len(times), len(mine), step.what)})
		}
	}
	failed := 0
	for _, p := range mine {
		if p.phase == corev1.PodFailed && failed < mostFailures {
			failed++
			at := p.ended
			if at.IsZero() {
				at = p.CreationTimestamp.Time
			}
			out = append(out, entry{at, "pod " + p.Name + " failed", p.exit, true})
		}
	}
	return out
}

// pod returns the view of a pod. The caller must hold the lock.
func (s *state) pod(p *pod) podView {
	v := podView{Namespace: p.Namespace, Name: p.Name, Job: p.group, Node: p.node, Phase: string(p.phase)}
	if g := s.groups[p.Namespace+"/"+p.group]; g != nil {
		v.Job = g.title()
	}
	switch {
	case p.phase == corev1.PodFailed:
		v.Says = p.exit
	case p.phase == corev1.PodPending && p.node == "":
		v.Phase, v.Says = "Waiting", p.waits
	default:
		v.Says = p.why
	}
	return v
}

// tell adds events, and what could not be read of them, and sorts the story.
func (v *storyView) tell(entries []entry, lacks []string) {
	v.Entries, v.Lacks = append(v.Entries, entries...), append(v.Lacks, lacks...)
	slices.SortStableFunc(v.Entries, func(a, b entry) int { return a.At.Compare(b.At) })
}
