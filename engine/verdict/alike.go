package verdict

import (
	"math"
	"slices"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/model"
	"github.com/celsius-scheduler/celsius/engine/slab"
)

// Alike numbers the nodes by their amounts: what they have, what is used, the number of tasks, and their devices. Nodes with the same
// number are equal for a row that reads nothing else of them. So the row is evaluated for one of them only. There are few numbers if
// machines have few sizes and tasks few shapes. If there are too many, the numbers start again.
type Alike struct {
	Nodes *model.Nodes
	// Epoch increases when the numbers start again.
	Epoch   uint64
	codes   []int32  // by row
	at      []uint64 // by row: the node's version for which the code was computed, plus 1
	words   []uint64 // the descriptions of the numbers, one after the other
	Ends    []int    // by number, in words
	hashes  []uint64 // by number
	table   []int32  // number plus 1, by hash; 0: free
	Models  map[string]uint64
	Scratch []uint64
	// representatives are by number: the last question for which a node with this number was evaluated.
	representatives []uint64
	question        uint64
}

// MostAlike returns the maximum number for this many rows.
func MostAlike(rows int) int { return rows + 1024 }

// Of returns the number of a row's node.
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

// Describe writes the amounts of a node to Scratch.
func (a *Alike) Describe(row int32) {
	n, out := a.Nodes, a.Scratch[:0]
	out = append(out, uint64(uint32(n.TaskCount[row])))
	for dim := range n.Unasked {
		out = append(out, uint64(uint32(n.Unasked[dim][row])))
	}
	for _, dim := range n.Columns() {
		has, uses, ends, waits := n.Allocatable[dim][row], n.Used[dim][row], n.Releasing[dim][row], n.Pipelined[dim][row]
		moves := ends != 0 || waits != 0
		if has == has || uses != 0 || moves { // so that the description is the same with and without an empty column
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

// Model returns a number for a model of devices.
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

// number returns the number of what Describe wrote, or assigns the next number.
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

// hashOfWords hashes two halves in parallel, because each step depends on the previous step of its half.
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

// representative reports whether a row's node is the first with its number in a question.
func (a *Alike) representative(row int32) bool {
	code := int(a.Of(row))
	for len(a.representatives) <= code {
		a.representatives = append(a.representatives, 0)
	}
	first := a.representatives[code] != a.question
	a.representatives[code] = a.question
	return first
}
