package eval

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/celsius-scheduler/celsius/rules"
)

// chunk is how many rows are computed at once. A few columns of this length fit into the first-level cache of a processor.
const chunk = 1024

// Batch is reusable memory for evaluation by column. One owner may use it at a time. The zero Batch is ready.
type Batch struct {
	table   rules.Rows
	asked   rules.Roots // the table for closures, with the meter if there is one
	meter   *Meter      // nil if nothing is counted
	steps   int64
	epoch   uint64
	failed  []int32
	marks   []uint64 // by row: the epoch in which it failed
	rows    vectors[int32]
	bools   vectors[bool]
	ints    vectors[int64]
	doubles vectors[float64]
	strings vectors[string]
	sources []rules.Source
	memos   map[any]any
}

// vectors lends slices with up to chunk elements.
type vectors[T any] struct{ free [][]T }

func (v *vectors[T]) take(n int) []T {
	last := len(v.free) - 1
	if last < 0 {
		return make([]T, n, chunk)
	}
	out := v.free[last]
	v.free = v.free[:last]
	return out[:n]
}

func (v *vectors[T]) give(vector []T) { v.free = append(v.free, vector) }

func (b *Batch) begin(e *Expr, t rules.Rows) {
	b.table, b.asked, b.meter, b.failed = t, t, nil, b.failed[:0]
	if e.Metered && !e.column.empty() {
		m := e.within(t, t)
		b.asked, b.meter, b.steps = m, m.meter, e.steps
	}
	b.epoch++
	if b.memos == nil {
		b.memos = map[any]any{}
	}
}

// fail records that the column has no value for a row.
func (b *Batch) fail(row int32) {
	for int(row) >= len(b.marks) {
		b.marks = append(b.marks, 0)
	}
	if b.marks[row] != b.epoch {
		b.marks[row] = b.epoch
		b.failed = append(b.failed, row)
	}
}

func (b *Batch) failAll(rows []int32) {
	for _, row := range rows {
		b.fail(row)
	}
}

// columnOf computes one value for each of at most chunk rows: out[i] belongs to rows[i]. If a row fails, its element of out has no meaning.
type columnOf[T any] func(b *Batch, rows []int32, out []T)

// column is a part of an expression that is evaluated by column. The functions for its static type are set.
type column struct {
	bools   columnOf[bool]
	ints    columnOf[int64]
	doubles columnOf[float64]
	strings columnOf[string]
	// byRow is the text of the first part that is computed row by row, or "".
	byRow string
}

// number returns the column as doubles, or nil if it contains neither ints nor doubles.
func (c column) number() columnOf[float64] {
	if c.doubles != nil || c.ints == nil {
		return c.doubles
	}
	return func(b *Batch, rows []int32, out []float64) {
		ints := b.ints.take(len(rows))
		c.ints(b, rows, ints)
		for i, x := range ints {
			out[i] = float64(x)
		}
		b.ints.give(ints)
	}
}

// HoldsEach computes a bool for each row of the table: out[i] belongs to rows[i]. It returns the rows without a value, each once, because
// the expression or a part of it fails there. Call Holds to get the error. The batch owns the returned slice.
func (e *Expr) HoldsEach(b *Batch, t rules.Rows, rows []int32, out []bool) (failed []int32) {
	b.begin(e, t)
	if e.column.bools == nil {
		eachRow(b, rows, out, func(r rules.Roots) (bool, ref.Val) { return e.Holds(r) })
		return b.failed
	}
	byChunks(b, e.column.bools, rows, out)
	return b.failed
}

// NumberEach computes an int or a double for each row, in the same way as HoldsEach.
func (e *Expr) NumberEach(b *Batch, t rules.Rows, rows []int32, out []float64) (failed []int32) {
	b.begin(e, t)
	f := e.numbers
	if f == nil {
		eachRow(b, rows, out, func(r rules.Roots) (float64, ref.Val) { return e.Number(r) })
		return b.failed
	}
	byChunks(b, f, rows, out)
	return b.failed
}

// byChunks computes a column chunk by chunk. If a function panics, all rows fail.
func byChunks[T any](b *Batch, f columnOf[T], rows []int32, out []T) {
	defer func() {
		if recover() != nil {
			b.failAll(rows)
		}
	}()
	for from := 0; from < len(rows); from += chunk {
		to := min(from+chunk, len(rows))
		f(b, rows[from:to], out[from:to])
	}
}

func eachRow[T any](b *Batch, rows []int32, out []T, f func(rules.Roots) (T, ref.Val)) {
	for i, row := range rows {
		b.table.Point(row)
		x, err := once(b, f)
		if err != nil {
			b.fail(row)
		}
		out[i] = x
	}
}

// once calls a closure for the current row of the table. Each call starts a new count.
func once[T any](b *Batch, f func(rules.Roots) (T, ref.Val)) (x T, err ref.Val) {
	if b.meter == nil {
		return f(b.table)
	}
	defer func() {
		if failure := recover(); failure != nil {
			err = internal(failure)
		}
	}()
	b.meter.evaluate(b.steps)
	return f(b.asked)
}

// byRows returns a column that calls a closure for each row.
func byRows[T any](f func(rules.Roots) (T, ref.Val)) columnOf[T] {
	if f == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) { eachRow(b, rows, out, f) }
}

// filled returns a column for an expression that does not read the row.
func filled[T any](f func(rules.Roots) (T, ref.Val)) columnOf[T] {
	if f == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) {
		if len(rows) == 0 {
			return
		}
		x, err := once(b, f)
		if err != nil {
			b.failAll(rows)
		}
		for i := range out {
			out[i] = x
		}
	}
}

// lifted is a part that reads only one facet of the row. If the facet has few values, the part is computed once for each value.
type lifted[T any] struct {
	part      facet
	of        func(rules.Roots) (T, ref.Val)
	otherwise columnOf[T] // used if the values are not few
}

// lift returns the column of a lifted part.
func lift[T any](part facet, of func(rules.Roots) (T, ref.Val), otherwise columnOf[T]) columnOf[T] {
	if of == nil || otherwise == nil {
		return nil
	}
	l := &lifted[T]{part, of, otherwise}
	return l.column
}

// known contains the results of a lifted part, by the number of the value that it reads.
type known[T any] struct {
	epoch  []uint64
	values []T
	errs   []bool
}

func (l *lifted[T]) column(b *Batch, rows []int32, out []T) {
	codes := b.rows.take(len(rows))
	defer b.rows.give(codes)
	distinct := l.part.member.Codes(b.table, l.part.key, rows, codes)
	if distinct == 0 {
		l.otherwise(b, rows, out)
		return
	}
	k, ok := b.memos[l].(*known[T])
	if !ok {
		k = &known[T]{}
		b.memos[l] = k
	}
	for len(k.epoch) < distinct {
		var none T
		k.epoch, k.values, k.errs = append(k.epoch, 0), append(k.values, none), append(k.errs, false)
	}
	for i, code := range codes {
		if k.epoch[code] != b.epoch {
			b.table.Point(rows[i])
			x, err := once(b, l.of)
			k.epoch[code], k.values[code], k.errs[code] = b.epoch, x, err != nil
		}
		if k.errs[code] {
			b.fail(rows[i])
		}
		out[i] = k.values[code]
	}
}

// pick returns the rows whose flag has the wanted value, and their indexes.
func (b *Batch) pick(rows []int32, flags []bool, want bool) (picked, places []int32) {
	picked, places = b.rows.take(len(rows)), b.rows.take(len(rows))
	n := 0
	for i, flag := range flags {
		picked[n], places[n] = rows[i], int32(i)
		if flag == want {
			n++
		}
	}
	return picked[:n], places[:n]
}

func (b *Batch) giveRows(lists ...[]int32) {
	for _, l := range lists {
		b.rows.give(l)
	}
}

// spread computes a column for some rows, and stores the results at their indexes.
func spread[T any](b *Batch, from *vectors[T], f columnOf[T], picked, places []int32, out []T) {
	if len(picked) == 0 {
		return
	}
	if len(picked) == len(out) {
		f(b, picked, out)
		return
	}
	values := from.take(len(picked))
	f(b, picked, values)
	for j, i := range places {
		out[i] = values[j]
	}
	from.give(values)
}

// junction is && and ||. The second side is computed for rows that the first side does not decide. A row fails if a side fails, whatever
// the other side is, because the closures implement CEL's rules for errors.
func junction(x, y columnOf[bool], open bool) columnOf[bool] {
	return func(b *Batch, rows []int32, out []bool) {
		x(b, rows, out)
		picked, places := b.pick(rows, out, open)
		spread(b, &b.bools, y, picked, places, out)
		b.giveRows(picked, places)
	}
}

// choice is ?:. Each side is computed only for the rows that select it.
func choice[T any](of func(*Batch) *vectors[T], when columnOf[bool], yes, no columnOf[T]) columnOf[T] {
	if yes == nil || no == nil {
		return nil
	}
	return func(b *Batch, rows []int32, out []T) {
		flags := b.bools.take(len(rows))
		when(b, rows, flags)
		for _, side := range []struct {
			want bool
			f    columnOf[T]
		}{{true, yes}, {false, no}} {
			picked, places := b.pick(rows, flags, side.want)
			spread(b, of(b), side.f, picked, places, out)
			b.giveRows(picked, places)
		}
		b.bools.give(flags)
	}
}

func negation(x columnOf[bool]) columnOf[bool] {
	return func(b *Batch, rows []int32, out []bool) {
		x(b, rows, out)
		for i := range out {
			out[i] = !out[i]
		}
	}
}

// absorbed returns the value of an argument that is the same for all rows of a column. If it is an error, all rows fail.
func absorbed(b *Batch, f func(rules.Roots) ref.Val, rows []int32) (ref.Val, bool) {
	if b.meter != nil {
		b.meter.evaluate(b.steps)
	}
	v := f(b.asked)
	if types.IsError(v) {
		b.failAll(rows)
		return nil, false
	}
	return v, true
}
