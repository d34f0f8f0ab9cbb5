package verdict

import (
	"encoding/binary"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/rules"
)

// epoch returns a text of everything that columns depend on in addition to classes and nodes: values of the cluster, and time.
func (v *Verdicts) epoch() string {
	plan := v.Plan
	if len(plan.globals) == 0 && len(plan.nowParts) == 0 && !plan.nowMoves && !plan.byCycle {
		return ""
	}
	x := &v.epochText
	b := x.room[:0]
	for _, r := range plan.globals {
		b = language.Encode(b, language.Follow(v.ClusterView, r.Steps))
	}
	f := v.ask.Frame()
	defer v.ask.Done()
	for _, e := range plan.nowParts {
		b = language.Encode(b, e.Eval(f))
	}
	if plan.nowMoves {
		b = language.Encode(b, v.Now)
	}
	if plan.byCycle {
		b = binary.AppendUvarint(b, v.Cycle)
	}
	if x.room = b; string(b) != x.text {
		x.text = string(b)
	}
	return x.text
}

// ClassKey returns a text of what the active rows, and the built-in fit, read of a task.
func (v *Verdicts) ClassKey(t *model.Task) string {
	x := v.TaskView(t)
	at := language.Stamp{Cycle: v.Cycle, Clock: v.c.ObjectClock}
	if v.Plan.moving {
		at.Clock = v.c.Clock
	}
	if x.ClassKey != "" && x.ClassAt == at && !v.readsAction() {
		return x.ClassKey
	}
	b := language.EncodeAmounts(v.spareText(), t.Request)
	listed := int64(0) // a task that requests GPUResource cannot use a device of a node that does not list it
	if t.RequestsGPUs {
		listed = 1
	}
	for _, n := range []int64{t.GPUCount<<1 | listed, t.GPUMilli, t.GPUMemory, t.GPUPercent} {
		b = binary.AppendVarint(b, n)
	}
	if v.Plan.ofVolumes && t.HasVolumes {
		b = append(b, 'v') // other rows are evaluated for it
	}
	b = v.encodeReads(b, t, v.Plan.Class)
	x.ClassAt = at
	if c := v.Classes.ByKey[string(b)]; c != nil {
		x.ClassKey = c.key
	} else {
		x.ClassKey = string(b)
	}
	v.keyText = b
	return x.ClassKey
}

// spareText lends a buffer for a text. Put the buffer back into keyText after use. A caller in the meantime gets no buffer.
func (v *Verdicts) spareText() []byte {
	b := v.keyText[:0]
	v.keyText = nil
	return b
}

// encodeReads appends the values of some reads for a task.
func (v *Verdicts) encodeReads(b []byte, t *model.Task, reads []rules.Read) []byte {
	task := v.TaskView(t)
	for i := range reads {
		r := &reads[i]
		switch r.Root {
		case "task":
			b = language.EncodeRead(b, task, r)
		case "job":
			b = language.EncodeRead(b, v.JobView(t.Job), r)
		case "queue":
			b = language.EncodeRead(b, v.QueueView(t.Job.Queue), r)
		case "action":
			b = language.Encode(b, v.Action)
		}
	}
	return b
}

func (v *Verdicts) readsAction() bool {
	for _, r := range v.Plan.Class {
		if r.Root == "action" {
			return true
		}
	}
	return false
}
