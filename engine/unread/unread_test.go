package unread_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/celsius-scheduler/celsius/engine/unread"
)

// mistake is a mistake in an object.
type mistake string

func (m mistake) Error() string   { return "Pod ml/x: " + string(m) }
func (m mistake) Problem() string { return string(m) }

func TestBookFollowsItsObjects(t *testing.T) {
	t.Parallel()
	var b unread.Book
	pod := func(name string) unread.ID { return unread.ID{Kind: "Pod", Name: "ml/" + name} }
	wrong := []error{mistake(`metadata.annotations[celsius.dev/gpu-count]: "x" is no whole number`)}
	b.Note(pod("train-1"), unread.Object{UID: "1", Group: "ml/train"}, false, wrong)
	b.Note(pod("train-0"), unread.Object{UID: "0", Group: "ml/train"}, false, wrong)
	b.Note(unread.ID{Kind: "Queue", Name: "lab"}, unread.Object{UID: "q"}, false, wrong)
	expect := func(when, group string, want ...string) {
		t.Helper()
		if got := b.PodsOf(group); !slices.Equal(got, want) {
			t.Errorf("%s: pods of %s are %v, want %v", when, group, got, want)
		}
	}
	expect("two", "ml/train", "ml/train-0", "ml/train-1")
	copied := b.Clone()
	b.Note(pod("train-0"), unread.Object{UID: "0", Group: "ml/tune"}, false, wrong)
	expect("moved", "ml/train", "ml/train-1")
	expect("moved", "ml/tune", "ml/train-0")
	b.Note(pod("train-1"), unread.Object{UID: "older"}, true, nil)
	expect("an older pod of the name was deleted", "ml/train", "ml/train-1")
	b.Note(pod("train-1"), unread.Object{UID: "1", Group: "ml/train"}, false, nil)
	expect("corrected", "ml/train")
	b.Note(pod("train-0"), unread.Object{UID: "0"}, true, nil)
	expect("deleted", "ml/tune")
	if got := copied.PodsOf("ml/train"); len(got) != 2 {
		t.Errorf("the copy changed with the book: %v", got)
	}
	if got := b.Names("Queue"); b.Empty() || !slices.Equal(got, []string{"lab"}) {
		t.Errorf("queues are %v, want lab", got)
	}
}

// TestMistakesAreCut checks that a user's long value does not make the book large.
func TestMistakesAreCut(t *testing.T) {
	t.Parallel()
	var b unread.Book
	b.Note(unread.ID{Kind: "Pod", Name: "ml/a"}, unread.Object{}, false, []error{mistake(strings.Repeat("é", 100_000))})
	if why := b.Why("Pod", "ml/a"); len(why) > 1100 || !strings.HasSuffix(why, "é …") {
		t.Errorf("%d bytes, the end is %q", len(why), why[len(why)-8:])
	}
}
