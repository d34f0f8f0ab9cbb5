package sim

import (
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
)

// TestPageEscapesControlCharacters writes the page of a cluster in which a tenant wrote control characters, and characters that change the
// direction of text. They are visible, as in the columns of a terminal.
func TestPageEscapesControlCharacters(t *testing.T) {
	t.Parallel()
	const objects = `{apiVersion: v1, kind: List, items: [
  {apiVersion: v1, kind: Node, metadata: {name: n, uid: n}, status: {allocatable: {cpu: 1}, conditions: [{type: Ready, status: "True"}]}},
  {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: "ml\u202egpj", uid: q}},
  {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g, uid: g}, spec: {queue: "a\u2066\u001b[2J", minMember: 1}},
]}`
	p, issues := policy.Default()
	if issues.Err() != nil {
		t.Fatal(issues)
	}
	w := NewWorld(Options{})
	if _, issues := w.Load(manifest.Source{Name: "f", Data: []byte(objects)}); issues.Err() != nil {
		t.Fatal(issues)
	}
	w.Policy = p
	w.Policy.Name = "p\u202eq"
	r, err := w.Run(1)
	if err != nil {
		t.Fatal(err)
	}
	page, err := r.Write("html")
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(page), "\u202e\u2066\x1b") {
		t.Error("a control character is left")
	}
	for _, want := range []string{`"ml\\u202egpj"`, `a\\u2066\\x1b[2J`, `<h1>Policy p\u202eq</h1>`} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
}
