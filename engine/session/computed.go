package session

import (
	"github.com/google/cel-go/common/types"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Computed returns the fields of a queue that the policy's tables compute, by name, in the form of messages. It leaves out fields without a
// value. Fields that settle once per cycle have the value of the last Begin.
func (s *Session) Computed(q *model.Queue) map[string]string {
	out := map[string]string{}
	for _, x := range s.p.Attributes() {
		if x.On != "queue" {
			continue
		}
		if v := policy.ReadAttribute(x, s.QueueView(q)); !types.IsError(v) && v != types.NullValue {
			out[x.Name] = language.Text(v)
		}
	}
	return out
}

// QueueAmounts returns a queue's computed Resources with that name, for reports; ok is false if there are none.
func (s *Session) QueueAmounts(q *model.Queue, name string) (model.Resources, bool) {
	for _, x := range s.p.Attributes() {
		if x.On == "queue" && x.Name == name {
			if a, ok := policy.ReadAttribute(x, s.QueueView(q)).(*language.Amounts); ok {
				return a.Resources, true
			}
		}
	}
	return nil, false
}
