// Package cron computes when the Jobs of a CronJob start, and creates these Jobs. It reads no clock, stores nothing and sends no request.
//
//	CronJob --ParseSchedule--> Schedule --Due(last, now)--> the start to do now, the number of missed starts, the next start
//	CronJob, start --Job--> the Job, with a name that is derived from the start
package cron

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones are available on every host

	robfig "github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// Schedule contains the times of the starts.
type Schedule struct {
	times robfig.Schedule
	zone  *time.Location // of a schedule that names a zone; nil: that of the process
}

// ParseSchedule parses a schedule in a time zone. A zone in the schedule itself, for example TZ=Europe/Berlin, has priority.
func ParseSchedule(spec *batchv1alpha1.CronJobSpec) (*Schedule, error) {
	s := &Schedule{}
	text := strings.TrimSpace(spec.Schedule)
	if spec.TimeZone != nil && !NamesZone(text) {
		var err error
		if s.zone, err = ParseZone(*spec.TimeZone); err != nil {
			return nil, err
		}
		text = "TZ=" + *spec.TimeZone + " " + text
	}
	var err error
	if s.times, err = parse(text); err != nil {
		return nil, err
	}
	return s, nil
}

// NamesZone reports whether a schedule itself names a time zone.
func NamesZone(schedule string) bool {
	return strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=")
}

// parse parses a schedule. It recovers because the library panics on some inputs.
func parse(text string) (s robfig.Schedule, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			s, err = nil, fmt.Errorf("it cannot be read: %v", failure)
		}
	}()
	if s, err = robfig.ParseStandard(text); err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}
	return s, nil
}

// CheckSchedule returns the mistake of a schedule for admission, or nil.
func CheckSchedule(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("is empty; write when Jobs are due, such as 0 3 * * * for three o'clock each night")
	case strings.Contains(text, "TZ"):
		return errors.New("names a time zone; write it as timeZone")
	}
	s, err := parse(text)
	if err != nil {
		return fmt.Errorf("is no schedule: %w; write minute, hour, day, month and weekday, such as 0 3 * * *", err)
	}
	if every, ok := s.(robfig.ConstantDelaySchedule); ok && every.Delay < time.Minute {
		return errors.New("is shorter than a minute, and a Job is called after the minute in which it is due; write @every 1m or more")
	}
	first := s.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) // a year with a 29 February
	if first.IsZero() {
		return errors.New("is never due; look at the day and the month")
	}
	return nil
}

// zoneLetters are the characters in names of time zones.
const zoneLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"

// ParseZone returns the time zone of that name.
func ParseZone(name string) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("is %q; write the name of a time zone, such as Europe/Berlin, or Etc/UTC", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || strings.HasPrefix(part, "-") || len(part) > 14 || strings.Trim(part, zoneLetters) != "" || part == "" {
			return nil, fmt.Errorf("is %q, which cannot be the name of a time zone; write one such as Europe/Berlin", name)
		}
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("is %q, and there is no such time zone; write one such as Europe/Berlin, or Etc/UTC", name)
	}
	return zone, nil
}

// Due is the result of Schedule.Due.
type Due struct {
	// At is the last start that should have happened; zero: none.
	At time.Time
	// Missed is the number of starts that should have happened, including At. It is approximate if they are not evenly spaced.
	Missed int
	// Next is the next start after now.
	Next time.Time
}

// ErrNever reports that a schedule has no further start.
var ErrNever = errors.New("the schedule has no start from here on")

// Due returns the starts between two times, and the next start.
func (s *Schedule) Due(after, now time.Time) (Due, error) {
	if s.zone == nil { // the library uses the zone of its argument
		after, now = after.Local(), now.Local()
	}
	first := s.times.Next(after)
	if first.IsZero() {
		return Due{}, ErrNever
	}
	second := s.times.Next(first)
	if !second.IsZero() && second.Sub(first) < time.Second {
		return Due{}, ErrNever
	}
	d := Due{Next: s.times.Next(now)}
	switch {
	case now.Before(first):
		return d, nil
	case second.IsZero() || now.Before(second):
		d.At, d.Missed = first, 1
		return d, nil
	}
	apart := second.Sub(first)
	d.Missed = int(now.Sub(first)/apart) + 1
	for look := apart; d.At.IsZero(); look *= 2 { // begin near now, to skip most of the past starts
		from := now.Add(-look)
		if from.Before(first) {
			from = first.Add(-time.Second)
		}
		for t := s.times.Next(from); !t.IsZero() && !t.After(now); t = s.times.Next(t) {
			d.At = t
		}
	}
	return d, nil
}

// JobName returns the name of the Job of a start.
func JobName(cronJob string, at time.Time) string { return fmt.Sprintf("%s-%d", cronJob, at.Unix()/60) }

// longestSuffix is the maximum length of what a Job's name adds to the CronJob's name: a dash, and the minutes of the next centuries.
const longestSuffix = 11

// CheckName returns the mistake in the name of a CronJob, or nil.
func CheckName(name string) error {
	if most := validation.DNS1035LabelMaxLength - longestSuffix; len(name) > most {
		return fmt.Errorf("has %d characters, and may have %d: the names of Jobs and their pods begin with it", len(name), most)
	}
	return nil
}

// Job returns the Job of a start.
func Job(c *batchv1alpha1.CronJob, s *Schedule, at time.Time) *batchv1alpha1.Job {
	annotations := maps.Clone(c.Spec.JobTemplate.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	zone := time.UTC
	if s.zone != nil {
		zone = s.zone
	}
	annotations[batchv1alpha1.CronJobScheduledTimestampKey] = at.In(zone).Format(time.RFC3339)
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: JobName(c.Name, at), Namespace: c.Namespace, Labels: maps.Clone(c.Spec.JobTemplate.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, batchv1alpha1.GroupVersion.WithKind("CronJob"))},
		},
		Spec: *c.Spec.JobTemplate.Spec.DeepCopy(),
	}
}

// Surplus lists the Jobs beyond the number to keep, the oldest first. The Jobs must have ended in the same way. nil keeps all.
func Surplus(jobs []*batchv1alpha1.Job, most *int32) []*batchv1alpha1.Job {
	if most == nil || len(jobs) <= int(*most) {
		return nil
	}
	jobs = slices.Clone(jobs)
	slices.SortFunc(jobs, func(a, b *batchv1alpha1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return jobs[:len(jobs)-int(*most)]
}
