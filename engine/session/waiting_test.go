package session

import (
	"testing"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/model"
)

func TestWaitLimit(t *testing.T) {
	for _, test := range []struct {
		name        string
		annotations map[string]string
		fallback    string
		want        string
	}{
		{"nothing said", nil, "optional.none()", "none"},
		{"the default", nil, "optional.of(duration('1h'))", "some 3600s"},
		{"its own", map[string]string{model.WaitingTimeAnnotation: "90s"}, "optional.of(duration('1h'))", "some 90s"},
		{"by the older name", map[string]string{model.OldWaitingTimeAnnotation: "90s"}, "optional.none()", "some 90s"},
		{
			"by both names",
			map[string]string{model.WaitingTimeAnnotation: "1s", model.OldWaitingTimeAnnotation: "2s"},
			"optional.none()",
			"some 1s",
		},
		{"no duration", map[string]string{model.WaitingTimeAnnotation: "long"}, "optional.of(duration('1h'))", "some 3600s"},
		{"0", map[string]string{model.WaitingTimeAnnotation: "0s"}, "optional.none()", "none"},
		{"below 0", map[string]string{model.WaitingTimeAnnotation: "-1h"}, "optional.none()", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			own := aGroup("own", "q", func(g *v1beta1.PodGroup) { g.Annotations = test.annotations })
			got := asked(t, "job.waitLimit("+test.fallback+")", aNode("n1", "cpu=1"), aPod("p", "cpu=1", inGroup("own")), own)
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestInWindow(t *testing.T) {
	for _, test := range []struct{ at, window, zone, want string }{
		{"2026-01-05T12:00:00Z", "08:00-18:00", "UTC", "true"},
		{"2026-01-05T08:00:00Z", "08:00-18:00", "UTC", "true"},
		{"2026-01-05T17:59:59Z", "08:00-18:00", "UTC", "true"},
		{"2026-01-05T18:00:00Z", "08:00-18:00", "UTC", "false"},
		{"2026-01-05T23:00:00Z", "22:00-6:00", "UTC", "true"},
		{"2026-01-05T03:00:00Z", "22:00 - 06:00", "UTC", "true"},
		{"2026-01-05T12:00:00Z", "22:00-06:00", "UTC", "false"},
		{"2026-01-05T12:00:00Z", "0:00-0:00", "UTC", "true"},
		{"2026-01-05T18:30:00Z", "08:00-18:00", "America/New_York", "true"},
		{"2026-07-05T07:30:00Z", "09:00-10:00", "Europe/Paris", "true"},  // summer time
		{"2026-01-05T07:30:00Z", "09:00-10:00", "Europe/Paris", "false"}, // winter time
		{"2026-01-05T12:00:00Z", "25:00-26:00", "UTC", `("25:00-26:00" is no window of the day; write it as 22:00-06:00)`},
		{"2026-01-05T12:00:00Z", "08:00", "UTC", `("08:00" is no window of the day; write it as 22:00-06:00)`},
		{"2026-01-05T12:00:00Z", "08:00-18:00", "Mars/Base", `("Mars/Base" is no time zone; write it as Europe/Paris or UTC)`},
		{"2026-01-05T12:00:00Z", "08:00-18:00", "Local", `("Local" is no time zone; write it as Europe/Paris or UTC)`},
	} {
		expression := "inWindow(timestamp('" + test.at + "'), '" + test.window + "', '" + test.zone + "')"
		if got := asked(t, expression, aNode("n1", "cpu=1"), aPod("p", "cpu=1")); got != test.want {
			t.Errorf("%s: got %s, want %s", expression, got, test.want)
		}
	}
}
