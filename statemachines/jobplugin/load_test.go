package jobplugin

import "testing"

func TestDefault(t *testing.T) {
	set, issues := Default()
	if set == nil || len(issues) > 0 {
		t.Fatal(issues.Error())
	}
}
