package model

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// TestAnswers checks that an answer touches its subjects, and the tasks of a job. An answer may come before its subject. An answer with a
// mistake removes the older answer.
func TestAnswers(t *testing.T) {
	c := NewCluster(Options{})
	about := func(name string, subject extender.Subject, says string) Delta {
		return Delta{Object: &extender.Answer{
			ObjectMeta: metav1.ObjectMeta{Name: name}, URL: "http://x", Of: subject, At: metav1.NewTime(time.Unix(1000, 0)), Says: says,
		}}
	}
	job, of := extender.Subject{Kind: extender.Job, Job: "a/g"}, extender.Subject{Kind: extender.Queue, Queue: "q"}
	if errs := c.Apply(about("before", job, extender.Yes)); errs != nil {
		t.Fatal(errs)
	}
	apply(t, c, Delta{Object: queue("q")}, Delta{Object: group("g", "q")})
	versions := func() string { return fmt.Sprint(c.Jobs["a/g"].Version, " ", c.Queues["q"].Version) }
	was := versions()
	c.Apply(about("before", job, extender.Yes))
	if versions() != was {
		t.Error("the same answer again touches its subject")
	}
	c.Apply(about("before", job, extender.No))
	if versions() == was {
		t.Error("an answer does not touch its job")
	}
	was = versions()
	c.Apply(about("queue", of, extender.Yes))
	if versions() == was || c.Answers.Find("http://x", "", of) == nil {
		t.Error("an answer does not touch its queue")
	}
	errs := c.Apply(about("queue", of, "perhaps"))
	if fmt.Sprint(errs) != `[ExtenderAnswer queue: says: is "perhaps", not one of yes, no]` || c.Answers.Find("http://x", "", of) != nil {
		t.Errorf("%v", errs)
	}
	c.Apply(Delta{Op: Delete, Object: &extender.Answer{ObjectMeta: metav1.ObjectMeta{Name: "before"}}})
	if !c.Answers.None() {
		t.Error("an answer stays that was deleted")
	}
}
