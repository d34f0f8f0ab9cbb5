package explain

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// TestMasked checks the texts about an eviction for a pod of another namespace. None of them contains a name from that namespace.
func TestMasked(t *testing.T) {
	e := model.Evict{
		Task: "mine/low-0", Job: "mine/low", For: "theirs/secret-0", ForJob: "theirs/secret", ForQueue: "q", Node: "n1", Action: "preempt",
		Rows: []string{"priority/strictly-lower"}, NeededFor: "theirs/secret-1",
		Needed: model.Reason{Text: "spared, theirs/secret-0 and theirs/secret-1 have no place here", Table: "builtin", Rule: "fit"},
	}
	mine := &Cycle{Sees: func(namespace string) bool { return namespace == "mine" }}
	text, err := json.Marshal(mine.Masked(e))
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{mine.eviction(&e), string(text)} {
		if strings.Contains(told, "secret") || !strings.Contains(told, "a pod of another namespace") {
			t.Errorf("it is told\n%s", told)
		}
	}
	c := model.NewCluster(model.Options{})
	c.Tasks[e.Task], c.Tasks[e.For] = &model.Task{}, &model.Task{}
	mine.cluster = c
	if told := certificate(mine, &e); told != "" {
		t.Errorf("what rows read of a pod that who asks may not know is told:\n%s", told)
	}
	all := &Cycle{}
	if told := all.eviction(&e); !strings.Contains(told, "for theirs/secret-0") {
		t.Errorf("who sees all is told\n%s", told)
	}
}
