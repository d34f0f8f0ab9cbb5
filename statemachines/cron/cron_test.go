package cron

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

func scheduleOf(text, zone string) *batchv1alpha1.CronJobSpec {
	spec := &batchv1alpha1.CronJobSpec{Schedule: text}
	if zone != "" {
		spec.TimeZone = &zone
	}
	return spec
}

// TestDue compares Due with an iteration over all starts.
func TestDue(t *testing.T) {
	texts := []string{
		"* * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0,1 0 * * *", "0 0 1 * *", "0 0 29 2 *", "0 9 * * MON-FRI", "@every 90m",
		"@daily", "5 4 13 * FRI",
	}
	zones := []string{"Etc/UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom(texts).Draw(t, "schedule")
		s, err := ParseSchedule(scheduleOf(text, rapid.SampledFrom(zones).Draw(t, "zone")))
		if err != nil {
			t.Fatal(err)
		}
		after := time.Unix(rapid.Int64Range(1_700_000_000, 1_800_000_000).Draw(t, "after"), 0)
		now := after.Add(time.Duration(rapid.Int64Range(0, 3*24*3600).Draw(t, "seconds")) * time.Second)
		if strings.HasPrefix(text, "0 0 ") || strings.HasPrefix(text, "5 4") {
			now = after.Add(time.Duration(rapid.Int64Range(0, 6*365).Draw(t, "days")) * 24 * time.Hour)
		}
		got, err := s.Due(after, now)
		if err != nil {
			t.Fatal(err)
		}
		var want time.Time
		for at := s.times.Next(after); !at.After(now); at = s.times.Next(at) {
			want = at
		}
		if every := strings.HasPrefix(text, "@every"); !got.At.Equal(want) && !every || every && got.At.IsZero() != want.IsZero() {
			t.Fatalf("%s: of the starts after %s at %s %s is due, want %s", text, after, now, got.At, want)
		}
		if (got.Missed > 0) != !want.IsZero() || got.At.After(now) || !got.Next.After(now) {
			t.Fatalf("%s: %+v", text, got)
		}
	})
}

// TestDueAtOnce checks that Due does not iterate over starts in the distant past.
func TestDueAtOnce(t *testing.T) {
	s, err := ParseSchedule(scheduleOf("* * * * *", "Etc/UTC"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)
	got, err := s.Due(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), now)
	if err != nil || !got.At.Equal(now.Truncate(time.Minute)) || got.Missed < 1_000_000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSummerTime checks the same behavior as Kubernetes' CronJobs: a start in the skipped hour may be skipped, and one in the repeated hour
// happens twice.
func TestSummerTime(t *testing.T) {
	s, err := ParseSchedule(scheduleOf("30 2 * * *", "Europe/Berlin"))
	if err != nil {
		t.Fatal(err)
	}
	count := func(from time.Time, days int) (n int) {
		for at := s.times.Next(from); at.Before(from.Add(time.Duration(days) * 24 * time.Hour)); at = s.times.Next(at) {
			n++
		}
		return n
	}
	if n := count(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC), 4); n < 3 || n > 4 {
		t.Errorf("%d starts in the four days around the beginning of summer time", n)
	}
	if n := count(time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC), 4); n != 5 {
		t.Errorf("%d starts in the four days around its end", n)
	}
}

// TestCheckSchedule checks the message for each schedule.
func TestCheckSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"0 3 * * *": "", "@hourly": "", "@every 1m": "", "0 0 29 2 *": "", "*/5 1-3,5 1 JAN-MAR SUN": "", "? ? * * *": "",
		"":                    "is empty; write when Jobs are due",
		" ":                   "is empty",
		"TZ=UTC 0 3 * * *":    "names a time zone; write it as timeZone",
		"often":               "is no schedule: expected exactly 5 fields, found 1",
		"0 0 3 * * *":         "is no schedule: expected exactly 5 fields, found 6",
		"61 * * * *":          "is no schedule: end of range (61) above maximum (59)",
		"0 0 * * 7":           "is no schedule: end of range (7) above maximum (6)",
		"@every 30s":          "is shorter than a minute",
		"@sometimes":          "is no schedule: unrecognized descriptor",
		"0 0 30 2 *":          "is never due",
		"*/0 * * * *":         "is no schedule: step of range should be a positive number",
		"@every -1h":          "is shorter than a minute",
		"0 0 1 1 * \x00 \xff": "is no schedule",
	} {
		err := CheckSchedule(text)
		if (want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestParseZone checks which time zones exist.
func TestParseZone(t *testing.T) {
	for name, ok := range map[string]bool{
		"Etc/UTC": true, "Europe/Berlin": true, "America/Argentina/Ushuaia": true, "": false, "Local": false, "local": false,
		"Mars/Olympus":  false,
		"../etc/passwd": false, "Europe//Berlin": false, "Europe/Ber lin": false, "-x": false, "./UTC": false,
	} {
		if _, err := ParseZone(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// FuzzSchedule checks that no text makes the parser panic or loop, and that every valid schedule has a start.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"0 3 * * *", "@every 1h", "TZ=", "TZ=UTC", "CRON_TZ=x 0 0 * * *", "@", "1-/ * * * *", "0 0 31 4,6 *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(scheduleOf(text, ""))
		if (err == nil) != (s != nil) {
			t.Fatalf("%q: %v and %v", text, s, err)
		}
		if CheckSchedule(text) != nil {
			return
		}
		if err != nil {
			t.Fatalf("%q is let in, and cannot be read: %v", text, err)
		}
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		if due, err := s.Due(now, now); err != nil || !due.Next.After(now) {
			t.Fatalf("%q: %+v, %v", text, due, err)
		}
	})
}

// TestCheckName checks the maximum length of a CronJob's name, with which the names of Jobs and pods begin.
func TestCheckName(t *testing.T) {
	if err := CheckName(strings.Repeat("a", 52)); err != nil {
		t.Error(err)
	}
	if err := CheckName(strings.Repeat("a", 53)); err == nil || !strings.Contains(err.Error(), "has 53 characters, and may have 52") {
		t.Error(err)
	}
}
