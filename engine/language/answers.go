package language

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/extender"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// AnswersMember is the field that distinguishes answers of extenders at different moments.
const AnswersMember = "answers"

// AnswerType returns the type of an extender's answer.
func AnswerType() *cel.Type { return Object("Answer") }

// answerValue is an extender's answer as a value. A nil answer has not arrived yet.
type answerValue struct {
	url string
	of  *extender.Known
}

// ConvertToNative implements ref.Val.
func (a *answerValue) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("an answer has no other form")
}

// ConvertToType implements ref.Val.
func (a *answerValue) ConvertToType(to ref.Type) ref.Val {
	if to == types.TypeType {
		return AnswerType()
	}
	return types.NewErr("an answer cannot become a %s", to.TypeName())
}

// Equal implements ref.Val. It compares the identity of the answers.
func (a *answerValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(*answerValue)
	return types.Bool(ok && o.name() == a.name())
}

// Type implements ref.Val.
func (a *answerValue) Type() ref.Type { return AnswerType() }

// Value implements ref.Val.
func (a *answerValue) Value() any { return a }

// name returns a text that differs for each answer.
func (a *answerValue) name() string {
	if a.of == nil {
		return a.url
	}
	return fmt.Sprintf("%s %d", a.url, a.of.Serial)
}

// says returns the word of the answer: about a node, if one is given.
func (a *answerValue) says(n *NodeView) string {
	x, known := a.ofNode(n)
	switch {
	case a.of == nil || !known:
		return ""
	case a.of.Error != "" || x.Error != "":
		return extender.Failed
	case n == nil:
		return a.of.Says
	case x.Refused != "":
		return extender.Refuse
	}
	return extender.Allow
}

// text returns the reason: the answer's own text if it refuses, or our text if there is no answer.
func (a *answerValue) text(n *NodeView) string {
	x, known := a.ofNode(n)
	switch {
	case a.of == nil || !known:
		return fmt.Sprintf("extender at %s has not answered yet", a.url)
	case a.of.Error != "":
		return fmt.Sprintf("extender at %s: %s", a.url, a.of.Error)
	case x.Error != "":
		return fmt.Sprintf("extender at %s: %s", a.url, x.Error)
	case x.Refused != "":
		return x.Refused
	}
	return fmt.Sprintf("extender at %s: %s", a.url, a.says(n))
}

// ofNode returns the answer about a node. Without a node, the answer applies to the whole subject.
func (a *answerValue) ofNode(n *NodeView) (x extender.NodeAnswer, known bool) {
	if n == nil || a.of == nil || a.of.Error != "" {
		return x, true
	}
	found := a.of.Node(n.Of.Name)
	if found == nil {
		return x, false
	}
	return *found, true
}

func (a *answerValue) score(n *NodeView) float64 {
	x, _ := a.ofNode(n)
	return x.Score
}

func (a *answerValue) at() time.Time {
	if a.of == nil {
		return time.Unix(0, 0).UTC()
	}
	return a.of.At.Time
}

// Answer returns the answer of an address in a form about the object of a view.
func (w *World) Answer(url, as string, view ref.Val) ref.Val {
	return &answerValue{url, w.c.Answers.Find(url, as, subjectOf(view))}
}

func subjectOf(view ref.Val) extender.Subject {
	switch v := view.(type) {
	case *TaskView:
		return TaskSubject(v.Of)
	case *JobView:
		return extender.Subject{Kind: extender.Job, Job: v.Of.Key}
	case *QueueView:
		return extender.Subject{Kind: extender.Queue, Queue: v.Of.Name}
	}
	return extender.Subject{}
}

// TaskSubject returns the subject for questions about a task. Tasks of one role with equal requests and node constraints share it.
func TaskSubject(t *model.Task) extender.Subject {
	h := fnv.New64a()
	h.Write(EncodeAmounts(nil, t.Request))
	h.Write(binary.AppendVarint(nil, t.Priority))
	for _, text := range []string{t.NodeAffinityKey, t.PreferredKey, t.TolerationsKey, t.HostPortsKey, t.PriorityClassName} {
		h.Write(encodeString(nil, text))
	}
	for _, image := range t.Images {
		h.Write(encodeString(nil, image))
	}
	return extender.Subject{Kind: extender.Task, Job: t.Job.Key, Role: t.Role, Like: fmt.Sprintf("%016x", h.Sum64())}
}

// answersField declares the field for classes and memos that depend on answers.
func answersField[T ref.Val](w func(T) *World) *rules.Member {
	return hidden(AnswersMember, FromSpec, rules.ByObject, "what extenders said", func(of T) ref.Val {
		c := w(of).c
		if c.Answers.None() {
			return types.String("")
		}
		return types.String(fmt.Sprint(c.Answers.VersionsOf(subjectOf(of))))
	})
}

func answerObject() *rules.Object {
	return &rules.Object{
		Name: "Answer", Type: AnswerType(), Leaf: true,
		Doc: "What an extender said: a value of the accounting function `answer`.",
	}
}

// answerFunctions returns the functions of answers.
func answerFunctions() []*rules.Function {
	of := func(name, doc string, result *cel.Type, byNode, byAnswer func(a *answerValue, n *NodeView) ref.Val) *rules.Function {
		f := Method(name, doc, []*cel.Type{AnswerType(), NodeType()}, result, func(args ...ref.Val) ref.Val {
			a, okA := args[0].(*answerValue)
			n, okN := args[1].(*NodeView)
			if !okA || !okN {
				return wrongArgument(args[0])
			}
			return byNode(a, n)
		}, "{0}", "{1}.name")
		f.Overloads[0].ID += "_node"
		if byAnswer != nil {
			f.Overloads = slices.Insert(f.Overloads, 0, answerOverload(name, result, byAnswer))
		}
		return f
	}
	both := func(name, doc string, get func(a *answerValue, n *NodeView) string) *rules.Function {
		get1 := func(a *answerValue, n *NodeView) ref.Val { return types.String(get(a, n)) }
		return of(name, doc, cel.StringType, get1, get1)
	}
	return []*rules.Function{
		both("says", "The word that was said: permit, reject or abstain as a vote, yes or no; of a node allow or refuse; failed where it could "+
			"not be asked; \"\" where it has not answered yet.", (*answerValue).says),
		both("text", "Why: why the node is refused, how it could not be asked, or that it has not answered yet.", (*answerValue).text),
		of("score", "The score that was given for the node; 0 where there is none.", cel.DoubleType,
			func(a *answerValue, n *NodeView) ref.Val { return types.Double(a.score(n)) }, nil),
		{Name: "askedAt", Doc: "When it was asked; the beginning of 1970 where it has not answered yet.", Overloads: []rules.Overload{
			answerOverload("askedAt", cel.TimestampType, func(a *answerValue, _ *NodeView) ref.Val { return types.Timestamp{Time: a.at()} }),
		}},
	}
}

// answerOverload returns an overload that takes only an answer.
func answerOverload(name string, result *cel.Type, get func(a *answerValue, n *NodeView) ref.Val) rules.Overload {
	return Method(name, "", []*cel.Type{AnswerType()}, result, func(args ...ref.Val) ref.Val {
		a, ok := args[0].(*answerValue)
		if !ok {
			return wrongArgument(args[0])
		}
		return get(a, nil)
	}, "{0}").Overloads[0]
}
