package eval

import (
	"strings"
	"time"

	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// zoned returns a native form for a part of a timestamp in a time zone that is a literal, or nil. CEL's own function reads the file of the
// zone in each evaluation.
func zoned(function string, parts []kernel) *rules.Native {
	if len(parts) != 2 {
		return nil
	}
	read := zonedPart(function)
	name, ok := parts[1].constant.(types.String)
	if read == nil || !ok || strings.Contains(string(name), ":") {
		return nil
	}
	zone, err := time.LoadLocation(string(name))
	if err != nil {
		return nil
	}
	return &rules.Native{Int: func(of, _, _ ref.Val) (int64, bool) {
		t, ok := of.(types.Timestamp)
		return int64(read(t.In(zone))), ok
	}}
}

// zonedPart returns the function for a part of a timestamp. As in CEL, months and days of the year count from 0, and days of the month too,
// except getDate.
func zonedPart(function string) func(time.Time) int {
	switch function {
	case overloads.TimeGetFullYear:
		return time.Time.Year
	case overloads.TimeGetMonth:
		return func(t time.Time) int { return int(t.Month()) - 1 }
	case overloads.TimeGetDayOfYear:
		return func(t time.Time) int { return t.YearDay() - 1 }
	case overloads.TimeGetDayOfMonth:
		return func(t time.Time) int { return t.Day() - 1 }
	case overloads.TimeGetDate:
		return time.Time.Day
	case overloads.TimeGetDayOfWeek:
		return func(t time.Time) int { return int(t.Weekday()) }
	case overloads.TimeGetHours:
		return time.Time.Hour
	case overloads.TimeGetMinutes:
		return time.Time.Minute
	case overloads.TimeGetSeconds:
		return time.Time.Second
	case overloads.TimeGetMilliseconds:
		return func(t time.Time) int { return t.Nanosecond() / 1e6 }
	}
	return nil
}
