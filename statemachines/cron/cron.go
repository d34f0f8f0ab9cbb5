// Package cron says when the Jobs of a CronJob are due, and what they are. Nothing is asked or stored here, and the time is given.
//
//	CronJob --ParseSchedule--> Schedule --Due(last, now)--> the start that is due, how many were missed, the next one
//	CronJob, start --Job--> the Job, under a name that the start gives
package cron

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones are known wherever the controllers run

	robfig "github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// Schedule is when starts are due.
type Schedule struct {
	times robfig.Schedule
	zone  *time.Location // of a schedule that names one; nil: that of the process
}

// ParseSchedule reads a schedule in a time zone. A zone that the schedule itself names, as TZ=Europe/Berlin, goes before.
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

// NamesZone says whether a schedule names a time zone itself.
func NamesZone(schedule string) bool {
	return strings.HasPrefix(schedule, "TZ=") || strings.HasPrefix(schedule, "CRON_TZ=")
}

// parse reads the text of a schedule. The library panics on some.
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

// CheckSchedule says what is wrong with a schedule, as admission has it; nil: nothing.
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
	first := s.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)) // a year with a 29th of February
	if first.IsZero() {
		return errors.New("is never due; look at the day and the month")
	}
	return nil
}

// zoneLetters are those of which the names of time zones are made.
const zoneLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"

// ParseZone reads a time zone.
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

// Due is what is due of a schedule.
type Due struct {
	// At is the last start that is due; zero: none is.
	At time.Time
	// Missed is how many are due, with that one: about, where they are not evenly spaced.
	Missed int
	// Next is the next start after now.
	Next time.Time
}

// ErrNever says that a schedule has no further start.
var ErrNever = errors.New("the schedule has no start from here on")

// Due gives what is due now, of the starts after a time.
func (s *Schedule) Due(after, now time.Time) (Due, error) {
	if s.zone == nil { // the library reads the time in the zone of what it is given
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
	for look := apart; d.At.IsZero(); look *= 2 { // those far back need not be gone through
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

// JobName is the name of the Job of a start.
func JobName(cronJob string, at time.Time) string { return fmt.Sprintf("%s-%d", cronJob, at.Unix()/60) }

// longestSuffix is how long what follows a CronJob's name in that of a Job may be: a dash and the minutes of the next centuries.
const longestSuffix = 11

// CheckName says what is wrong with the name of a CronJob; nil: nothing.
func CheckName(name string) error {
	if most := validation.DNS1035LabelMaxLength - longestSuffix; len(name) > most {
		return fmt.Errorf("has %d characters, and may have %d: the names of Jobs and their pods begin with it", len(name), most)
	}
	return nil
}

// Job makes the Job of a start.
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

// Surplus lists the Jobs, of those that ended alike, beyond as many as are kept, the oldest first; nil keeps all.
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
