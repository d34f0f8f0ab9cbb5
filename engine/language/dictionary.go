package language

import (
	"strconv"
	"strings"

	"github.com/celsius-scheduler/celsius/engine/follow"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
	"github.com/celsius-scheduler/celsius/rules"
)

// Limits of dictionaries. MostDictionaries limits their number, because terms of pods choose their subjects. A dictionary may have
// FewValues values, plus one for each eight nodes.
const (
	MostDictionaries = 256
	FewValues        = 64
)

// dictionary assigns a number to each value of one property of the nodes, such as a label. Only the node objects determine these values.
// The numbers do not change between two changes of the cluster.
type dictionary struct {
	of     func(n *model.Node) string
	codes  []int32  // by row
	object []uint64 // by row: the version of the code, plus 1
	cursor follow.Cursor[int32]
	index  map[string]int32
	Many   bool // there are too many values
	retry  uint64
}

// aspect is the property of a node that a dictionary numbers: a member, and a label key if the member is labels.
type aspect struct{ member, labels string }

// LimitDictionaries drops all dictionaries if there are too many, and all node classes if there are too many. It runs between two cycles.
func (w *World) LimitDictionaries() {
	if len(w.nodeClasses.of) >= mostNodeClasses {
		w.nodeClasses = nodeClasses{}
	}
	if len(w.dictionaries) >= MostDictionaries {
		clear(w.dictionaries)
	}
}

// dictionaryOf returns the dictionary of an aspect; nil: there are too many. Dictionaries are dropped only between two cycles, because
// numbers must not change while a row is evaluated.
func (w *World) dictionaryOf(a aspect, of func(n *model.Node) string) *dictionary {
	d := w.dictionaries[a]
	if d == nil && len(w.dictionaries) < MostDictionaries && !w.Shared {
		d = &dictionary{of: of, index: map[string]int32{}}
		w.dictionaries[a] = d
	}
	return d
}

// numbers writes the codes of rows, and returns an upper limit for them; 0: there are too many values.
func (d *dictionary) numbers(w *World, rows, out []int32) int {
	if d == nil {
		return 0
	}
	if !d.current(w) {
		if w.Shared {
			return 0 // several goroutines read it
		}
		d.catchUp(w)
	}
	if d.Many {
		return 0
	}
	for i, row := range rows {
		out[i] = d.codes[row]
	}
	return len(d.index)
}

// current reports whether no change must be applied.
func (d *dictionary) current(w *World) bool {
	n := &w.c.Nodes
	return d.Many && w.Cycle < d.retry || d.cursor.AtEnd(&n.Log) && len(d.codes) == len(n.Rows)
}

// catchUp numbers the changed nodes. It renumbers all nodes if there are too many values, because some may be unused.
func (d *dictionary) catchUp(w *World) {
	n := &w.c.Nodes
	entries, ok := d.cursor.Read(&n.Log)
	if !ok || d.Many || len(d.codes) != len(n.Rows) {
		d.all(w)
		return
	}
	for _, row := range entries {
		d.number(n, row)
	}
	if len(d.index) > FewValues+len(n.Rows)/8 {
		d.all(w)
	}
}

// all numbers every row from scratch.
func (d *dictionary) all(w *World) {
	n := &w.c.Nodes
	clear(d.index)
	d.codes, d.object = slab.Resized(d.codes, len(n.Rows)), slab.Resized(d.object, len(n.Rows))
	d.Many = false
	d.cursor.Skip(&n.Log)
	for row := range n.Rows {
		d.number(n, int32(row))
		if len(d.index) > FewValues+len(n.Rows)/8 {
			d.Many, d.retry = true, w.Cycle+FewValues
			return
		}
	}
}

func (d *dictionary) number(n *model.Nodes, row int32) {
	if d.object[row] == n.Object[row]+1 || n.Rows[row] == nil {
		return
	}
	d.object[row] = n.Object[row] + 1
	value := d.of(n.Rows[row])
	code, ok := d.index[value]
	if !ok {
		code = int32(len(d.index))
		d.index[value] = code
	}
	d.codes[row] = code
}

// coded adds numbers for its values to a member of Node.
func coded(m *rules.Member, of func(n *model.Node) string) *rules.Member {
	m.Codes = func(t rules.Rows, _ string, rows, out []int32) int {
		w := worldOf(t)
		return w.dictionaryOf(aspect{member: m.Name}, of).numbers(w, rows, out)
	}
	return m
}

// codedLabels adds numbers for the values of one label to the labels of Node.
func codedLabels(m *rules.Member) *rules.Member {
	m.Codes = func(t rules.Rows, key string, rows, out []int32) int {
		w := worldOf(t)
		return w.ByLabel(key).numbers(w, rows, out)
	}
	return m
}

// ByLabel returns the dictionary of one label.
func (w *World) ByLabel(key string) *dictionary {
	a := aspect{labelsMember, key}
	if d := w.dictionaries[a]; d != nil {
		return d
	}
	return w.dictionaryOf(a, func(n *model.Node) string { return labelText(n, key) })
}

// byLabels returns the dictionary of a combination of labels.
func (w *World) byLabels(keys []string) *dictionary {
	if len(keys) == 1 {
		return w.ByLabel(keys[0])
	}
	var name strings.Builder
	for _, key := range keys {
		writeCounted(&name, key)
	}
	return w.dictionaryOf(aspect{"several labels", name.String()}, func(n *model.Node) string {
		var b strings.Builder
		for _, key := range keys {
			writeCounted(&b, labelText(n, key))
		}
		return b.String()
	})
}

const labelsMember = "labels"

// writeCounted writes a part with its length, so that different parts give different texts.
func writeCounted(b *strings.Builder, part string) {
	b.WriteString(strconv.Itoa(len(part)))
	b.WriteByte(' ')
	b.WriteString(part)
}

// labelText distinguishes an empty label from a missing one.
func labelText(n *model.Node, key string) string {
	v, ok := n.Labels[key]
	if !ok {
		return ""
	}
	return "=" + v
}

func taintText(n *model.Node) string {
	var b strings.Builder
	for _, t := range n.Taints {
		writeCounted(&b, t.Key)
		writeCounted(&b, t.Value)
		writeCounted(&b, string(t.Effect))
	}
	return b.String()
}
