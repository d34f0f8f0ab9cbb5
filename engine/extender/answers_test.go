package extender

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func said(name string, of Subject, says string) *Answer {
	return &Answer{ObjectMeta: metav1.ObjectMeta{Name: name}, URL: "u", Of: of, At: metav1.NewTime(time.Unix(1000, 0)), Says: says}
}

// TestFind checks that an answer counts for its subject and for narrower subjects, and that the narrowest answer wins. Of two answers about
// the same subject, the first by name counts. The order of arrival does not matter.
func TestFind(t *testing.T) {
	job := Subject{Kind: Task, Job: "a/j"}
	role, like := job, job
	role.Role = "worker"
	like.Role, like.Like = "worker", "x"
	list := []*Answer{said("b", job, "job"), said("a", job, "first"), said("c", role, "role"), said("d", like, "like")}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}} {
		var s Answers
		for _, i := range order {
			if touched := s.Set(list[i]); !slices.Equal(touched, []Subject{list[i].Of}) {
				t.Errorf("%s touches %v", list[i].Name, touched)
			}
		}
		other := like
		other.Like = "y"
		elsewhere := job
		elsewhere.Role = "ps"
		for of, want := range map[Subject]string{like: "like", other: "role", elsewhere: "first", job: "first"} {
			if got := s.Find("u", "", of); got == nil || got.Says != want {
				t.Errorf("of %v %q it says %v, want %q", of, of.Like, got, want)
			}
		}
		if s.Find("v", "", like) != nil || s.Find("u", "", Subject{Kind: Job, Job: "a/j"}) != nil {
			t.Error("an answer counts elsewhere")
		}
		before := s.VersionsOf(like)
		if s.Set(said("c", role, "role")) != nil || s.VersionsOf(like) != before {
			t.Error("the same again is another answer")
		}
		if s.Remove("d"); s.Find("u", "", like).Says != "role" || s.VersionsOf(like) == before {
			t.Error("what was removed counts")
		}
		leave(t, &s, list)
	}
}

// leave removes answers. Nothing may remain after that.
func leave(t *testing.T, s *Answers, list []*Answer) {
	t.Helper()
	for _, a := range list {
		s.Remove(a.Name)
	}
	if !s.None() || len(s.byKey)+len(s.versions)+len(s.count) > 0 {
		t.Error("something of what was removed is kept")
	}
}

// TestMoves checks that a name has one answer, even when the answer moves to another subject.
func TestMoves(t *testing.T) {
	var s Answers
	a, b := Subject{Kind: Queue, Queue: "a"}, Subject{Kind: Queue, Queue: "b"}
	s.Set(said("x", a, Yes))
	if touched := s.Set(said("x", b, Yes)); !slices.Equal(touched, []Subject{a, b}) || s.Find("u", "", a) != nil || s.Find("u", "", b) == nil {
		t.Errorf("touched %v", touched)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		a    Answer
		want string
	}{
		{*said("x", Subject{Kind: Job, Job: "a/j"}, Permit), ""},
		{*said("x", Subject{Kind: Job, Job: "a/j"}, "perhaps"), "says is \"perhaps\", not one of permit, reject, abstain, yes, no"},
		{*said("x", Subject{Kind: Queue, Queue: "q"}, Permit), "says is \"permit\", not one of yes, no"},
		{*said("x", Subject{Kind: Queue}, Yes), "of.queue is missing"},
		{*said("x", Subject{Kind: Job, Job: "j"}, Yes), "of.job is \"j\"; write NAMESPACE/NAME of the PodGroup"},
		{*said("x", Subject{Kind: "Pod"}, ""), "of.kind is \"Pod\", not Task, Job or Queue"},
		{*said("x", Subject{Kind: Task, Job: "a/j"}, Yes), "says is \"yes\": of tasks it is said by node, under nodes"},
		{
			Answer{Of: Subject{Kind: Task, Job: "a/j"}, Nodes: []NodeAnswer{{Score: math.NaN()}}},
			"url is missing: write the address that was asked, as the policy's table has it; " +
				"at is missing: an answer that was given at no time is of no use; nodes[0].name is missing; " +
				"nodes[0].score is NaN, and no number to be compared; the largest is 1e+15",
		},
		{Answer{URL: "u", At: metav1.Now(), Of: Subject{Kind: Job, Job: "a/j"}, Error: "answered 500"}, ""},
		{Answer{URL: "u", At: metav1.Now(), Of: Subject{Kind: Job, Job: "a/j"}, Error: "x", As: JobReady}, ""},
		{
			Answer{URL: "u", At: metav1.Now(), Of: Subject{Kind: Job, Job: "a/j"}, Error: "x", As: Predicate},
			`as is "predicate", and no form of question about a Job`,
		},
		{
			Answer{URL: "u", At: metav1.Now(), Of: Subject{Kind: Task, Job: "a/j"}, Nodes: []NodeAnswer{{Name: "n", Score: -1e300}}},
			"nodes[0].score is -1e+300, and no number to be compared; the largest is 1e+15",
		},
	} {
		var got []string
		for _, m := range c.a.Mistakes() {
			got = append(got, fmt.Sprint(m.Field, " ", m.Text))
		}
		if text := strings.Join(got, "; "); text != c.want {
			t.Errorf("%q, want %q", text, c.want)
		}
	}
}

// TestForms checks that two questions at one address each have their own answer: a rating admits no node. An answer without a form answers
// both.
func TestForms(t *testing.T) {
	of := Subject{Kind: Task, Job: "a/j"}
	var s Answers
	rating, either := said("a", of, ""), said("b", of, "")
	rating.As = Prioritize
	s.Set(rating)
	if s.Find("u", Predicate, of) != nil || s.Find("u", Prioritize, of) == nil {
		t.Error("a rating is an answer to who asked for a verdict")
	}
	s.Set(either)
	if got := s.Find("u", Predicate, of); got == nil || got.Name != "b" {
		t.Errorf("found %v, want what says nothing of its form", got)
	}
	if got := s.Find("u", Prioritize, of); got.Name != "a" {
		t.Errorf("found %s, want what says that it is of that form", got.Name)
	}
}

// TestAddresses checks the errors about addresses. They do not contain the secret parts of an address.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://x/y": "", "https://x:8443/a/b?c=d@e": "", "https://[::1]:1/x": "",
		"": "is no address", "x:80/y": "is no address", "/filter": "is no address", "ftp://x/y": "is no address", "http:///y": "is no address",
		"http://x/y#z": "is no address", "http://x y/": "is no address", "http://me:secret@x/y": "has a user", "http://secret@x": "has a user",
		"me:secret@x/y": "has a user", "http://me:secret@x:y:z/": "has a user",
	} {
		if got := CheckAddress(address); !strings.Contains(got, want) || want == "" && got != "" || strings.Contains(got, "secret") {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
