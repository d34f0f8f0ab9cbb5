package session

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/engine/verdict"
	"github.com/celsius-scheduler/celsius/rules"
	"github.com/celsius-scheduler/celsius/rules/eval"
)

// Split says over how many processors one question may be spread: an expensive row of the policy, asked of many nodes. The zero
// Value spreads what pays over all that the process may use. What is answered is the same.
type Split struct {
	// Cores is the most goroutines that one question has, the one that asks included; 0: as many as runtime.GOMAXPROCS says.
	Cores int
	// From is how many nodes a row is asked of at least to be spread, whatever it costs; 0: so many that it pays.
	From int
}

// A row is spread where asking it of all nodes takes worthSplitting or more, as far as that can be told beforehand, over goroutines that
// have leastShare of it each: to wake one takes some 10 us, and it may have to wait for a processor. All in nanoseconds.
const (
	worthSplitting = 200_000
	leastShare     = 100_000
)

// pool is the goroutines that one question is spread over, beside the one that asks it. None of them outlives the question.
type pool struct {
	workers []*worker
}

// worker is one of them, with its memory.
type worker struct {
	frame  language.Frame
	work   language.Workspace
	batch  eval.Batch
	failed []int32
}

// HoldsEach is HoldsEach of a query, over several cores where that pays. It is the session's memory that the result lies in.
func (s *evaluator) HoldsEach(q *verdict.Query, f *language.Frame, rows []int32, out []bool) (failed []int32) {
	s.w.Breathe()
	if n := s.cores(q, len(rows)); n > 1 {
		return split(s, n, q, f, rows, out, (*eval.Expr).HoldsEach)
	}
	return inParts(s, rows, out, func(rows []int32, out []bool) []int32 { return q.HoldsEach(&s.batch, f, rows, out) })
}

// NumberEach is NumberEach likewise.
func (s *evaluator) NumberEach(q *verdict.Query, f *language.Frame, rows []int32, out []float64) (failed []int32) {
	s.w.Breathe()
	if n := s.cores(q, len(rows)); n > 1 {
		return split(s, n, q, f, rows, out, (*eval.Expr).NumberEach)
	}
	return inParts(s, rows, out, func(rows []int32, out []float64) []int32 { return q.NumberEach(&s.batch, f, rows, out) })
}

// inParts evaluates all rows at once, or part by part where it may be broken off in between.
func inParts[T bool | float64](s *evaluator, rows []int32, out []T, each func(rows []int32, out []T) []int32) (failed []int32) {
	const part = 128
	for s.w.BreaksOff() && len(rows) > part {
		failed = append(failed, each(rows[:part], out[:part])...)
		rows, out = rows[part:], out[part:]
		s.w.Breathe()
	}
	rest := each(rows, out)
	if len(failed) == 0 {
		return rest
	}
	return append(failed, rest...)
}

// cores is how many goroutines a query of so many nodes is spread over.
func (s *evaluator) cores(q *verdict.Query, rows int) int {
	if !q.Apart || s.Split.Cores == 1 {
		return 1
	}
	most := rows * q.PerNode / leastShare
	switch {
	case s.Split.From > 0 && rows >= s.Split.From:
		most = rows
	case s.Split.From > 0 || rows*q.PerNode < worthSplitting:
		return 1
	}
	if s.Split.Cores > 0 {
		return min(most, s.Split.Cores)
	}
	return min(most, runtime.GOMAXPROCS(0))
}

// askEach evaluates an expression for many rows, and gives those of which it says nothing.
type askEach[T any] func(e *eval.Expr, b *eval.Batch, roots rules.Rows, rows []int32, out []T) (failed []int32)

// split evaluates a query by n goroutines, this one included: each takes the next part of the rows until there is none, and fills its
// places of out. It comes back when all are done.
func split[T bool | float64](s *evaluator, n int, q *verdict.Query, f *language.Frame, rows []int32, out []T, each askEach[T]) []int32 {
	const partsEach = 4 // so that they end at about the same time
	s.prepare(q, f)
	part := max(len(rows)/(partsEach*n), 1)
	var taken atomic.Int64
	drain := func(w *worker) {
		for {
			to := int(taken.Add(int64(part)))
			from := to - part
			if from >= len(rows) {
				return
			}
			to = min(to, len(rows))
			w.failed = append(w.failed, given(each, q.Expr, w, rows[from:to], out[from:to])...)
		}
	}
	for len(s.pool.workers) < n {
		s.pool.workers = append(s.pool.workers, &worker{work: language.Workspace{Variables: make([]language.HeldValue, len(s.work.Variables))}})
	}
	workers := s.pool.workers[:n]
	for _, w := range workers {
		w.frame, w.failed = *f, w.failed[:0]
		w.frame.Workspace = &w.work
	}
	// What is made by the first who reads it, dictionaries and their like, is there when the others begin.
	first := workers[0]
	first.failed = append(first.failed, given(each, q.Expr, first, rows[:1], out[:1])...)
	rows, out = rows[1:], out[1:]
	s.w.Share()
	var others sync.WaitGroup
	for _, w := range workers[1:] {
		others.Go(func() { drain(w) })
	}
	drain(first)
	others.Wait()
	s.w.Shared = false
	for _, w := range workers[1:] {
		first.failed = append(first.failed, w.failed...)
	}
	slices.Sort(first.failed)
	return first.failed
}

// given evaluates some rows, and gives those up that the evaluation panics at: asked alone they say why.
func given[T any](each askEach[T], e *eval.Expr, w *worker, rows []int32, out []T) (failed []int32) {
	defer func() {
		if recover() != nil {
			failed = rows
		}
	}()
	return each(e, &w.batch, &w.frame, rows, out)
}

// prepare has all be made that a query reads beside the nodes, so that it is but read from then on.
func (s *evaluator) prepare(q *verdict.Query, f *language.Frame) {
	for _, read := range q.Reads.All {
		if read.Root == "node" || read.Through {
			continue
		}
		root, _ := f.ResolveName(read.Root)
		v, ok := root.(ref.Val)
		for i := 0; ok && i < len(read.Steps) && read.Steps[i].Member.Get != nil; i++ {
			v = read.Steps[i].Member.Get(v.Value())
			ok = !read.Steps[i].Each
		}
	}
}
