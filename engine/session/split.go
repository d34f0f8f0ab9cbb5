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

// Split determines on how many processors an expensive row is evaluated for many nodes. The zero value uses all processors of the process,
// if that is faster. The answers are the same.
type Split struct {
	// Cores is the maximum number of goroutines for one evaluation, the caller included; 0: runtime.GOMAXPROCS.
	Cores int
	// From is the minimum number of nodes for which a row is split, whatever it costs; 0: the number for which it is faster.
	From int
}

// A row is split if its evaluation for all nodes is expected to take worthSplitting or more. Each goroutine then gets at least leastShare
// of it. To wake a goroutine takes some 10 us, and it may have to wait for a processor. All values in nanoseconds.
const (
	worthSplitting = 200_000
	leastShare     = 100_000
)

// pool contains the goroutines that evaluate one row together with the caller. None of them outlives the evaluation.
type pool struct {
	workers []*worker
}

// worker is one goroutine with its memory.
type worker struct {
	frame  language.Frame
	work   language.Workspace
	batch  eval.Batch
	failed []int32
}

// HoldsEach does what HoldsEach of a query does, on several cores if that is faster. The result is in the memory of the session.
func (s *evaluator) HoldsEach(q *verdict.Query, f *language.Frame, rows []int32, out []bool) (failed []int32) {
	s.w.Breathe()
	if n := s.cores(q, len(rows)); n > 1 {
		return split(s, n, q, f, rows, out, (*eval.Expr).HoldsEach)
	}
	return inParts(s, rows, out, func(rows []int32, out []bool) []int32 { return q.HoldsEach(&s.batch, f, rows, out) })
}

// NumberEach does what NumberEach of a query does, in the same way.
func (s *evaluator) NumberEach(q *verdict.Query, f *language.Frame, rows []int32, out []float64) (failed []int32) {
	s.w.Breathe()
	if n := s.cores(q, len(rows)); n > 1 {
		return split(s, n, q, f, rows, out, (*eval.Expr).NumberEach)
	}
	return inParts(s, rows, out, func(rows []int32, out []float64) []int32 { return q.NumberEach(&s.batch, f, rows, out) })
}

// inParts evaluates all rows at once, or part by part if the work may be stopped in between.
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

// cores returns the number of goroutines for a query over this many nodes.
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

// askEach evaluates an expression for many rows, and returns the rows for which it has no value.
type askEach[T any] func(e *eval.Expr, b *eval.Batch, roots rules.Rows, rows []int32, out []T) (failed []int32)

// split evaluates a query with n goroutines, the caller included. Each takes the next part of the rows until none is left, and writes to
// its positions of out. split returns when all are done.
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
	// The first reader creates dictionaries and similar values. They exist when the other goroutines begin.
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

// given evaluates some rows. If the evaluation panics, it returns all of them as failed: a separate evaluation of each row then gives the
// reason.
func given[T any](each askEach[T], e *eval.Expr, w *worker, rows []int32, out []T) (failed []int32) {
	defer func() {
		if recover() != nil {
			failed = rows
		}
	}()
	return each(e, &w.batch, &w.frame, rows, out)
}

// prepare creates everything that a query reads in addition to the nodes, so that the goroutines only read it.
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
