package session

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Tell evaluates a row for a subject, without its guard, and returns the values of its parts.
func Tell(s *Session, r *policy.Rule, on Subject) (eval.Told, error) {
	f := s.ask.Frame()
	defer s.ask.Done()
	if err := s.about(f, on); err != nil {
		return eval.Told{}, err
	}
	return r.Expression.Tell(f, words), nil
}

// Refusers returns all rows of predicates that reject a node for a task.
func Refusers(s *Session, t *model.Task, row int32) (out []*policy.Rule) {
	f := s.ask.Frame().OfTask(t)
	defer s.ask.Done()
	f.Node = s.NodeView(row)
	for _, r := range s.p.Predicates() {
		if s.ask.Opinion(r, f) == language.No {
			out = append(out, r)
		}
	}
	return out
}

// Field is a computed field of one object, as text.
type Field struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	Value string `json:"value"`
}

// Fields returns the computed fields of an object that all rows can read, in the order of the policy's tables. There may be none.
func Fields(s *Session, on string, view any) (out []Field) {
	for _, x := range s.p.Attributes() {
		if x.On != on || x.Private {
			continue
		}
		if text, ok := words(policy.ReadAttribute(x, view)); ok {
			out = append(out, Field{x.Name, x.Table, text})
		}
	}
	return out
}

// longestWords is the maximum length of a value in output, in runes.
const longestWords = 80

// words returns a value as text for output; false: it is an object, whose text would be too long.
func words(v ref.Val) (string, bool) {
	switch v.(type) {
	case *language.TaskView, *language.JobView, *language.QueueView, *language.NodeView, *language.NamespaceView, *language.ClusterView:
		return "", false
	}
	if types.IsUnknown(v) {
		return "", false
	}
	text := language.Text(v)
	if utf8.RuneCountInString(text) > longestWords {
		text = string([]rune(text)[:longestWords-1]) + "…"
	}
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) { // a terminal would interpret it
		text = strconv.Quote(text)
	}
	return text, true
}
