package verdict

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Alike numbers the nodes by all that they tell in amounts: what they have, what of it is taken, by how many tasks, and their
// devices. Nodes of one number are the same to a row that reads nothing else of them, so that it is asked of one of them only. There
// are few numbers where machines come in few sizes and tasks in few shapes; where there are many, they begin anew.
type Alike struct {
	Nodes *model.Nodes
	// Epoch goes on when the numbers begin anew.
	Epoch   uint64
	codes   []int32  // by row
	at      []uint64 // by row: the node's version that the code is of, plus 1
	words   []uint64 // what the numbers stand for, one after the other
	Ends    []int    // by number, in words
	hashes  []uint64 // by number
	table   []int32  // number plus 1, by hash; 0: free
	Models  map[string]uint64
	Scratch []uint64
	// representatives are by number: the last question that a node of it was asked.
	representatives []uint64
	question        uint64
}

// MostAlike is how many numbers there may be for so many rows.
func MostAlike(rows int) int { return rows + 1024 }

// Of is the number of a row's node.
func (a *Alike) Of(row int32) int32 {
	version := a.Nodes.Version[row] + 1
	if int(row) < len(a.at) && a.at[row] == version {
		return a.codes[row]
	}
	if rows := len(a.Nodes.Rows); len(a.at) != rows || len(a.Ends) >= MostAlike(rows) {
		a.anew(rows)
	}
	a.Describe(row)
	code := a.number()
	a.codes[row], a.at[row] = code, version
	return code
}

func (a *Alike) anew(rows int) {
	a.Epoch++
	a.begin()
	a.codes, a.at = slab.Resized(a.codes, rows), slab.Resized(a.at, rows)
	a.words, a.Ends, a.hashes = a.words[:0], a.Ends[:0], a.hashes[:0]
	size := 64
	for size < 2*MostAlike(rows) {
		size *= 2
	}
	a.table = slab.Resized(a.table, size)
	if a.Models == nil || len(a.Models) > language.MostDictionaries {
		a.Models = map[string]uint64{}
	}
}

// Describe writes down what a node tells in amounts.
func (a *Alike) Describe(row int32) {
	n, out := a.Nodes, a.Scratch[:0]
	out = append(out, uint64(uint32(n.TaskCount[row])))
	for dim := range n.Unasked {
		out = append(out, uint64(uint32(n.Unasked[dim][row])))
	}
	for _, dim := range n.Columns() {
		has, uses, ends, waits := n.Allocatable[dim][row], n.Used[dim][row], n.Releasing[dim][row], n.Pipelined[dim][row]
		moves := ends != 0 || waits != 0
		if has == has || uses != 0 || moves { // it says the same with and without a column of nothing
			out = append(out, uint64(dim), math.Float64bits(has), math.Float64bits(uses))
		}
		if moves {
			out = append(out, uint64(dim), math.Float64bits(ends), math.Float64bits(waits))
		}
	}
	for i := range n.GPUs[row] {
		g := &n.GPUs[row][i]
		out = append(out, uint64(g.Index), a.Model(g.Model), uint64(g.TaskCount))
		out = append(out, uint64(g.Capacity), uint64(g.Free), uint64(g.Memory), uint64(g.MemoryFree))
	}
	devices := uint64(len(n.GPUs[row])) << 1
	if devices > 0 && n.GPUs[row][0].Unlisted {
		devices |= 1
	}
	out = append(out, a.Model(n.Rows[row].GPUModel), devices)
	out = append(out, uint64(len(out)))
	a.Scratch = out
}

// Model is a number for a model of devices.
func (a *Alike) Model(name string) uint64 {
	if name == "" {
		return 0
	}
	x, ok := a.Models[name]
	if !ok {
		x = uint64(len(a.Models) + 1)
		a.Models[name] = x
	}
	return x
}

// number finds the number of what describe wrote, or gives the next.
func (a *Alike) number() int32 {
	hash := hashOfWords(a.Scratch)
	mask := uint64(len(a.table) - 1)
	at := hash & mask
	for ; a.table[at] != 0; at = (at + 1) & mask {
		if code := a.table[at] - 1; a.hashes[code] == hash && slices.Equal(a.described(code), a.Scratch) {
			return code
		}
	}
	code := int32(len(a.Ends))
	a.words = append(a.words, a.Scratch...)
	a.Ends, a.hashes = append(a.Ends, len(a.words)), append(a.hashes, hash)
	a.table[at] = code + 1
	return code
}

// hashOfWords goes along two halves at once, as each step of one waits for the step before.
func hashOfWords(words []uint64) uint64 {
	const factor = 0x9e3779b97f4a7c15
	half := len(words) / 2
	front, back := uint64(len(words)), words[len(words)-1]
	second := words[half : 2*half]
	for i, w := range words[:half] {
		front = (front ^ w) * factor
		back = (back ^ second[i]) * factor
		front ^= front >> 29
		back ^= back >> 29
	}
	return (front ^ back>>7 ^ back<<9) * factor
}

func (a *Alike) described(code int32) []uint64 {
	from := 0
	if code > 0 {
		from = a.Ends[code-1]
	}
	return a.words[from:a.Ends[code]]
}

// begin starts a question.
func (a *Alike) begin() { a.question++ }

// representative says that a row's node is the first of its number in a question.
func (a *Alike) representative(row int32) bool {
	code := int(a.Of(row))
	for len(a.representatives) <= code {
		a.representatives = append(a.representatives, 0)
	}
	first := a.representatives[code] != a.question
	a.representatives[code] = a.question
	return first
}
