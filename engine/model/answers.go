package model

import "github.com/celsius-scheduler/celsius/engine/extender"

// setAnswer stores the answer of an extender, even if its subjects do not exist.
func setAnswer(c *Cluster, a *extender.Answer, m *mistakes) {
	for _, wrong := range a.Mistakes() {
		m.add(wrong.Field, "%s", wrong.Text)
	}
	if len(m.errs) > 0 {
		touchSubjects(c, c.Answers.Remove(a.Name))
		return
	}
	touchSubjects(c, c.Answers.Set(a))
}

// touchSubjects marks the subjects of answers as changed, as a change of their objects would.
func touchSubjects(c *Cluster, list []extender.Subject) {
	for _, of := range list {
		if q := c.Queues[of.Queue]; of.Kind == extender.Queue && q != nil {
			c.Slots.Queues.Change(q.Slot)
			c.touchQueue(q)
		}
		j := c.Jobs[of.Job]
		if j == nil || of.Kind == extender.Queue {
			continue
		}
		for _, t := range j.Tasks {
			c.Slots.Tasks.Change(t.Slot)
			c.touchTask(t, NoNode)
		}
		c.Slots.Jobs.Change(j.Slot)
		c.touchJob(j)
	}
}
