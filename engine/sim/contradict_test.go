package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/sim/manifest"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestSuggestionsAreBounded loads more pods on wrong nodes than names are looked for. All of them are reported, and pods that name the same
// wrong node have the same hint.
func TestSuggestionsAreBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: node-1, uid: n}}\n")
	const pods = source.MostHints + 20
	for i := range pods + 1 {
		fmt.Fprintf(&text, "- {apiVersion: v1, kind: Pod, metadata: {name: p%d, uid: p%d}, "+
			"spec: {schedulerName: celsius, nodeName: node-1-%d, containers: [{name: c}]}}\n", i, i, i%pods)
	}
	_, issues := NewWorld(Options{}).Load(manifest.Source{Name: "f", Data: []byte(text.String())})
	hints := 0
	for _, i := range issues {
		if i.Hint == "did you mean node-1?" {
			hints++
		}
	}
	if want := source.MostHints + 1; hints != want || len(issues) != pods+1 {
		t.Errorf("%d hints of %d issues, want %d of %d", hints, len(issues), want, pods+1)
	}
}

// TestPodSecurityIsNotChecked shows that one warning names each namespace whose Pod Security may refuse pods that new Jobs create.
func TestPodSecurityIsNotChecked(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for namespace, level := range map[string]string{"strict": "restricted", "host": "privileged"} {
		fmt.Fprintf(&text, "- {apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: %s}}}\n",
			namespace, level)
		for _, name := range []string{"train", "bert"} {
			fmt.Fprintf(&text, "- {apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: %s, namespace: %s}, spec: {schedulerName: "+
				"celsius, tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}}\n", name, namespace)
		}
	}
	_, issues := NewWorld(Options{}).Load(manifest.Source{Name: "f", Data: []byte(text.String())})
	const want = "Namespace strict has the label pod-security.kubernetes.io/enforce: restricted, and Pod Security is not checked here"
	if len(issues) != 1 || issues[0].Severity != source.Warning || !strings.HasPrefix(issues[0].Message, want) {
		t.Errorf("%v, want one warning: %s", issues, want)
	}
}
