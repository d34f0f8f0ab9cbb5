package policy

import "testing"

func TestDefaultCompiles(t *testing.T) {
	p, issues := Default()
	for _, i := range issues {
		t.Error(i.Render())
	}
	if p == nil {
		t.Fatal("no policy")
	}
	t.Log(p.RuleCount())
}
