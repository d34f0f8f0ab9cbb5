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
	// mode as written, "" where it is not written or no mode.
	mode v1alpha1.Mode
	// data is the policy as it is kept: apiVersion, kind, metadata.name and spec.
	data []byte
	// policy is nil where it does not compile; issues say why, or hold warnings.
	policy *policy.Policy
	issues source.Issues
	// ofQueues says that it is to serve the queues that it names, beside the one that serves the others.
	ofQueues bool
	// takenBack is why it was taken back, by what it says itself; "": it was not.
	takenBack string
	// faulty is the fault for which it is not served; "": there is none.
	faulty string
	// fallback and queues are as written, "" where they are not written.
	fallback, queues string
}

// same says whether two candidates are one generation of one object.
func (c *candidate) same(other *candidate) bool {
	return c != nil && other != nil && c.name == other.name && c.uid == other.uid && c.generation == other.generation
}

// String names the candidate in messages: default@3.
func (c *candidate) String() string {
	if c.uid == "" {
		return "the embedded default"
	}
	return fmt.Sprintf("%s@%d", c.name, c.generation)
}

// choice is what serves, and what was passed over on the way to it.
type choice struct {
	serving *candidate
	// policy is that of serving, in the mode that is in force.
	policy *policy.Policy
	// parts serve queues of their own beside it; policy has them in it.
	parts []*candidate
	// skipped are kept policies that do not compile any more, newest first.
	skipped []*candidate
	// kept are not fit to serve, and some of what they decide is in force.
	kept []*candidate
}

// all are those that serve.
func (c *choice) all() []*candidate { return append([]*candidate{c.serving}, c.parts...) }

// choose says which policy serves:
//
//	the selected object compiles           it
//	is there and does not compile       the newest of before that does, else the embedded default
//	is there, and its rows were faulty     likewise, with the predicates of the object
//	is there, and is a shadow              likewise
//	is there, and was taken back           likewise
//	it is not there                        the embedded default
//
// The mode is always that of the object, where it has one: the switch for an incident works in a
// policy that is broken otherwise. object is nil where there is none; before is newest first.
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

// inMode gives the policy in another mode.
func inMode(p *policy.Policy, mode v1alpha1.Mode) *policy.Policy {
	if mode == v1alpha1.ModeShadow {
		mode = v1alpha1.ModeActive // what serves beside a shadow was active
	}
	if mode == "" || p.Mode == string(mode) {
		return p
	}
	other := *p
	other.Mode = string(mode)
	return &other
}
