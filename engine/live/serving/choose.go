package serving

import (
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// candidate is a policy that might serve.
type candidate struct {
	name       string
	uid        types.UID // "" for the embedded default
	generation int64     // 0 for the embedded default
	// mode is the mode in the spec, or "" if the spec contains no valid mode.
	mode v1alpha1.Mode
	// data is the stored policy: apiVersion, kind, metadata.name and spec.
	data []byte
	// policy is nil if the candidate does not compile. issues contains the errors, or warnings.
	policy *policy.Policy
	issues source.Issues
	// ofQueues is true if the policy serves only the queues that it names, alongside the policy that serves all others.
	ofQueues bool
	// takenBack is the reason why the policy's own conditions rolled it back; "": it was not rolled back.
	takenBack string
	// faulty is the fault for which the policy is not served; "": none.
	faulty string
	// fallback and queues are the values in the spec, or "".
	fallback, queues string
}

// same reports whether two candidates are the same generation of the same object.
func (c *candidate) same(other *candidate) bool {
	return c != nil && other != nil && c.name == other.name && c.uid == other.uid && c.generation == other.generation
}

// String returns the name of the candidate for messages: default@3.
func (c *candidate) String() string {
	if c.uid == "" {
		return "the embedded default"
	}
	return fmt.Sprintf("%s@%d", c.name, c.generation)
}

// choice is the serving policy, and the candidates that could not serve.
type choice struct {
	serving *candidate
	// policy is the policy of serving, in the effective mode.
	policy *policy.Policy
	// parts are policies that serve their own queues alongside serving. policy contains them.
	parts []*candidate
	// skipped are stored policies that no longer compile, newest first.
	skipped []*candidate
	// kept contains candidates that are not fit to serve, but a part of their decisions is in force.
	kept []*candidate
}

// all returns all serving candidates.
func (c *choice) all() []*candidate { return append([]*candidate{c.serving}, c.parts...) }

// choose returns the policy that serves:
//
//	state of the selected object        what serves
//	it compiles                         the object
//	it does not compile                 the newest policy in before that compiles, else the embedded default
//	its rows were faulty                the same, with the predicates of the object
//	it is a shadow                      the same
//	it was rolled back                  the same
//	it does not exist                   the embedded default
//
// The mode is always that of the object, if it has one. So the switch for an incident works even in a broken policy. object is nil if it
// does not exist. before is ordered newest first.
func choose(object *candidate, before iter.Seq[*candidate], shipped *candidate) choice {
	if object == nil {
		return choice{serving: shipped, policy: shipped.policy}
	}
	if object.fit() {
		return choice{serving: object, policy: object.policy}
	}
	var out choice
	for c := range before {
		if c.fit() {
			out.serving = c
			break
		}
		if c.policy == nil {
			out.skipped = append(out.skipped, c)
		}
	}
	if out.serving == nil {
		out.serving = shipped
	}
	out.policy = inMode(out.serving.policy, object.mode)
	if object.keeps() == stopScheduling {
		out.policy = inMode(out.policy, v1alpha1.ModePaused)
	}
	return out
}

// inMode returns the policy in another mode.
func inMode(p *policy.Policy, mode v1alpha1.Mode) *policy.Policy {
	if mode == v1alpha1.ModeShadow {
		mode = v1alpha1.ModeActive // the policy that serves instead of a shadow was active
	}
	if mode == "" || p.Mode == string(mode) {
		return p
	}
	other := *p
	other.Mode = string(mode)
	return &other
}
