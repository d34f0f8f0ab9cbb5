package eval

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/source"
)

// TestZonedPartsAreCELs reads each part of a timestamp in a time zone that the expression contains as text. The results must equal those of
// cel-go, for each part and each zone.
func TestZonedPartsAreCELs(t *testing.T) {
	s := testScope(t)
	moments := []time.Time{
		{},
		time.Date(2026, 1, 1, 0, 30, 59, 999e6, time.UTC), time.Date(2024, 2, 29, 23, 59, 0, 1e6, time.UTC),
		time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(1969, 12, 31, 12, 0, 0, 0, time.FixedZone("", 3600)),
	}
	for _, part := range []string{
		"getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek", "getHours",
		"getMinutes", "getSeconds", "getMilliseconds",
	} {
		for _, zone := range []string{"UTC", "", "Europe/Paris", "America/New_York", "Asia/Kathmandu", "-02:30", "Nowhere/Land", "x:y"} {
			e, issues := Compile(s, source.NewText(fmt.Sprintf("now.%s('%s')", part, zone)), rules.Anything())
			if len(issues) > 0 {
				t.Fatal(issues)
			}
			for _, now := range moments {
				roots := testRoots(t, map[string]any{"now": types.Timestamp{Time: now}})
				got, want := e.Eval(roots), e.Interpret(roots)
				if types.IsError(got) && types.IsError(want) {
					continue
				}
				if got.Equal(want) != types.True {
					t.Errorf("%s at %s is %v, by cel-go %v", e.Text.Value, now, got, want)
				}
			}
		}
	}
}
