package numa

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

// mostCPUs is larger than the number of any CPU, so that a typing error does not use all memory.
const mostCPUs = 8192

const (
	mostNUMAs    = 64  // of a node: the kubelet's default maximum is 8
	mostMistakes = 10  // that are reported for one object
	mostShown    = 100 // bytes of a list in a message
)

const wordBits = 64

// Set is an immutable set of CPUs, by number.
type Set struct{ words []uint64 } // the last one is not 0

// Of returns the set of these CPUs. It ignores numbers that no CPU has.
func Of(cpus ...int) (s Set) {
	for _, cpu := range cpus {
		if cpu < 0 || cpu >= mostCPUs {
			continue
		}
		for len(s.words) <= cpu/wordBits {
			s.words = append(s.words, 0)
		}
		s.words[cpu/wordBits] |= 1 << (cpu % wordBits)
	}
	return s
}

// Parse reads a list of numbers and ranges, such as 0,2-4. Its cost does not depend on how often the text names a CPU.
func Parse(text string) (s Set, err error) {
	if text == "" {
		return s, nil
	}
	words := make([]uint64, mostCPUs/wordBits)
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := number(text, from)
		if err != nil {
			return Set{}, err
		}
		last, err := number(text, to)
		if err != nil {
			return Set{}, err
		}
		if first > last {
			return Set{}, fmt.Errorf("%s is no list of CPUs such as 0,2-4", quoted(text))
		}
		for i := first / wordBits; i <= last/wordBits; i++ {
			word := ^uint64(0)
			if i == first/wordBits {
				word &= ^uint64(0) << (first % wordBits)
			}
			if i == last/wordBits {
				word &= ^uint64(0) >> (wordBits - 1 - last%wordBits)
			}
			words[i] |= word
		}
	}
	return Set{words}.Or(Set{}), nil
}

// number reads a CPU number of a list.
func number(list, text string) (int, error) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, fmt.Errorf("%s is no list of CPUs such as 0,2-4", quoted(list))
	}
	n, err := strconv.Atoi(text)
	if err != nil || n >= mostCPUs {
		return 0, fmt.Errorf("%s names the CPU %s; numbers are below %d", quoted(list), text[:min(len(text), 20)], mostCPUs)
	}
	return n, nil
}

// quoted returns a list in the form for messages.
func quoted(list string) string {
	if len(list) > mostShown {
		return fmt.Sprintf("%q…", list[:mostShown])
	}
	return fmt.Sprintf("%q", list)
}

// String returns the form that Parse reads.
func (s Set) String() string {
	if s.Empty() {
		return ""
	}
	return cpuset.New(s.list()...).String()
}

// All lists the CPUs in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s.words {
			for ; word != 0; word &= word - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

func (s Set) list() (out []int) {
	for cpu := range s.All() {
		out = append(out, cpu)
	}
	return out
}

// Len returns the number of CPUs.
func (s Set) Len() (n int) {
	for _, word := range s.words {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether there are no CPUs.
func (s Set) Empty() bool { return len(s.words) == 0 }

// And returns the CPUs of both sets.
func (s Set) And(o Set) Set {
	return s.join(o, min(len(s.words), len(o.words)), func(a, b uint64) uint64 { return a & b })
}

// Or returns the CPUs of either set.
func (s Set) Or(o Set) Set {
	return s.join(o, max(len(s.words), len(o.words)), func(a, b uint64) uint64 { return a | b })
}

// Without returns the CPUs that the other set does not contain.
func (s Set) Without(o Set) Set {
	return s.join(o, len(s.words), func(a, b uint64) uint64 { return a &^ b })
}

// Equal reports whether both contain the same CPUs.
func (s Set) Equal(o Set) bool { return s.within(o) && o.within(s) }

// within reports whether the other set contains all of them.
func (s Set) within(o Set) bool {
	for i := range s.words {
		if s.words[i]&^o.word(i) != 0 {
			return false
		}
	}
	return true
}

// shared returns how many CPUs both contain.
func (s Set) shared(o Set) (n int) {
	for i := range min(len(s.words), len(o.words)) {
		n += bits.OnesCount64(s.words[i] & o.words[i])
	}
	return n
}

func (s Set) word(i int) uint64 {
	if i < len(s.words) {
		return s.words[i]
	}
	return 0
}

func (s Set) join(o Set, n int, op func(a, b uint64) uint64) Set {
	out := make([]uint64, n)
	last := 0
	for i := range out {
		if out[i] = op(s.word(i), o.word(i)); out[i] != 0 {
			last = i + 1
		}
	}
	if last == 0 {
		return Set{}
	}
	return Set{out[:last]}
}
