package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/rules/source"
)

// HelpColumns is the width of help texts.
const HelpColumns = 80

// NarrowHelp wraps the descriptions of flags in the help of a program to HelpColumns columns.
func NarrowHelp(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages ", fmt.Sprintf(".FlagUsagesWrapped %d ", HelpColumns), " for more information about a command.", " to read about one.",
	).Replace(root.UsageTemplate()))
}

// column is one column of a list of T.
type column[T any] struct {
	name string
	of   func(T) string
	wide bool // with -o wide only
}

// grid prints rows of cells in columns, as wide as the rows of the first call need.
type grid struct {
	out    io.Writer
	widths []int
	paint  bool
}

// newGrid returns a grid. On a terminal it colors phases and states, unless the user disables colors (https://no-color.org).
func newGrid(out io.Writer, env func(string) string) *grid {
	g := &grid{out: out}
	if f, ok := out.(*os.File); ok && env("NO_COLOR") == "" && env("TERM") != "dumb" {
		g.paint = term.IsTerminal(int(f.Fd())) //nolint:gosec // descriptors are small
	}
	return g
}

// print prints rows. The last column is not padded.
func (g *grid) print(rows [][]string) {
	rows = escaped(rows)
	for _, row := range rows {
		for i, cell := range row {
			if i == len(g.widths) {
				g.widths = append(g.widths, 0)
			}
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			text := cell
			if g.paint {
				text = painted(cell)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(cell)+3))
			}
		}
		say(g.out, "%s\n", b.String())
	}
}

// escaped returns rows with visible control characters and line breaks. Names of users can contain characters that a terminal would
// interpret, or that look like other rows.
func escaped(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, cell := range row {
			out[i] = append(out[i], source.Line(cell))
		}
	}
	return out
}

// painted colors phases and states: red after a failure, yellow for waiting, green otherwise.
func painted(cell string) string {
	colour := 0
	switch cell {
	case "Failed", "Aborted", "Terminated", "Closed", "Unknown", "Error", "CrashLoopBackOff", "ImagePullBackOff", "Evicted", "OOMKilled":
		colour = 31
	case "Running", "Completed", "Open", "Succeed":
		colour = 32
	case "Pending", "Inqueue", "Restarting", "Aborting", "Terminating", "Completing", "Closing", "ContainerCreating":
		colour = 33
	default:
		return cell
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, cell)
}

// header and cells return a row of each column's name or value.
func header[T any](columns []column[T]) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.name)
	}
	return out
}

func cells[T any](columns []column[T], of T) []string {
	var out []string
	for _, c := range columns {
		out = append(out, c.of(of))
	}
	return out
}

// age formats the age of an object in the same way as kubectl.
func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// outputFlags define how a list is printed.
type outputFlags struct {
	print  *genericclioptions.PrintFlags
	format string
	bare   bool
	watch  bool
}

// wideFormat is the output format that kubectl's library leaves to the command.
const wideFormat = "wide"

func (o *outputFlags) register(c *cobra.Command, watches bool) {
	o.print = genericclioptions.NewPrintFlags("")
	formats := append(o.print.AllowedFormats(), wideFormat)
	slices.Sort(formats)
	c.Flags().StringVarP(&o.format, "output", "o", "", "how to print: "+strings.Join(formats, ", ")+"; those of kubectl")
	bareFlag(c, &o.bare)
	if watches {
		c.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and print what changes")
	}
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// printer returns the library's printer for the format, or nil for output in columns.
func (o *outputFlags) printer(scheme *runtime.Scheme) (printers.ResourcePrinter, error) {
	if o.format == "" || o.format == wideFormat {
		return nil, nil
	}
	o.print.OutputFormat = &o.format
	p, err := o.print.WithTypeSetter(scheme).ToPrinter()
	if err != nil {
		return nil, fmt.Errorf("--output %s: %w", o.format, err)
	}
	return p, nil
}

// listing prints a list of objects.
type listing[T client.Object] struct {
	tool    *tool
	flags   *outputFlags
	columns []column[T]
	keep    func(T) bool // nil: all
}

func (l listing[T]) shown() []column[T] {
	return slices.DeleteFunc(slices.Clone(l.columns), func(c column[T]) bool { return c.wide && l.flags.format != wideFormat })
}

// show prints the objects, and with --watch also changes.
func (l listing[T]) show(c *cobra.Command, r *Reach, list client.ObjectList, of ...client.ListOption) error {
	ctx := c.Context()
	if err := r.List(ctx, list, of...); err != nil {
		return err
	}
	objects, err := itemsOf[T](list)
	if err != nil {
		return err
	}
	for _, o := range objects { // a printed object contains its kind
		gvk, err := r.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	if l.keep != nil {
		objects = slices.DeleteFunc(objects, func(o T) bool { return !l.keep(o) })
	}
	p, err := l.flags.printer(r.Scheme())
	if err != nil {
		return err
	}
	g := newGrid(c.OutOrStdout(), l.tool.Env)
	switch {
	case p != nil:
		err = printObjects(p, c.OutOrStdout(), l.flags.format == "name", list, objects)
	case len(objects) == 0 && !l.flags.watch:
		say(c.ErrOrStderr(), "No resources found\n")
	default:
		l.rows(g, objects, !l.flags.bare)
	}
	if err != nil || !l.flags.watch {
		return err
	}
	return l.follow(ctx, r, list, g, p, of...)
}

func (l listing[T]) rows(g *grid, objects []T, headed bool) {
	var rows [][]string
	if headed {
		rows = append(rows, header(l.shown()))
	}
	for _, o := range objects {
		rows = append(rows, cells(l.shown(), o))
	}
	g.print(rows)
}

// follow prints objects when they change, until the user stops it.
func (l listing[T]) follow(ctx context.Context, r *Reach, list client.ObjectList, g *grid, p printers.ResourcePrinter,
	of ...client.ListOption,
) error {
	for ctx.Err() == nil {
		from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
		w, err := r.Watch(ctx, list, append(slices.Clone(of), from)...)
		if err != nil {
			return err
		}
		version, err := l.changes(ctx, w, g, p)
		w.Stop()
		if err != nil {
			return err
		}
		list.SetResourceVersion(cmp.Or(version, list.GetResourceVersion()))
	}
	return nil
}

// changes prints the events of a watch until it ends, and returns the resource version of the last event.
func (l listing[T]) changes(ctx context.Context, w watch.Interface, g *grid, p printers.ResourcePrinter) (version string, err error) {
	for {
		var e watch.Event
		var ok bool
		select {
		case <-ctx.Done():
			return version, nil
		case e, ok = <-w.ResultChan():
		}
		if !ok {
			return version, nil
		}
		if e.Type == watch.Error {
			return version, apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(T)
		if !ok {
			continue
		}
		version = o.GetResourceVersion()
		switch {
		case l.keep != nil && !l.keep(o):
		case p != nil:
			err = p.PrintObj(o, g.out)
		default:
			l.rows(g, []T{o}, false)
		}
		if err != nil {
			return version, err
		}
	}
}

// printObjects prints a list in the same way as kubectl: as a List, or each object separately.
func printObjects[T client.Object](p printers.ResourcePrinter, out io.Writer, each bool, list client.ObjectList, objects []T) error {
	if each {
		for _, o := range objects {
			if err := p.PrintObj(o, out); err != nil {
				return err
			}
		}
		return nil
	}
	kept := make([]runtime.Object, len(objects))
	for i, o := range objects {
		kept[i] = o
	}
	if err := apimeta.SetList(list, kept); err != nil {
		return err
	}
	return p.PrintObj(list, out)
}

// itemsOf returns the objects of a list.
func itemsOf[T client.Object](list client.ObjectList) ([]T, error) {
	objects, err := apimeta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		typed, ok := o.(T)
		if !ok {
			return nil, fmt.Errorf("%T is listed among %T", o, *new(T))
		}
		out = append(out, typed)
	}
	return out, nil
}

// without removes some names from a list.
func without(list, some []string) []string {
	return slices.DeleteFunc(list, func(name string) bool { return slices.Contains(some, name) })
}

// selectorFlag and bareFlag add flags that several lists have.
func selectorFlag(c *cobra.Command, to *string) {
	c.Flags().StringVarP(to, "selector", "l", "", "only those with such labels: key=value,key2 in (a,b)")
}

func bareFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "no-headers", false, "leave the line of headers out")
}

// showOne prints one object.
func (l listing[T]) showOne(c *cobra.Command, r *Reach, o T) error {
	p, err := l.flags.printer(r.Scheme())
	if err != nil {
		return err
	}
	if p != nil {
		return p.PrintObj(o, c.OutOrStdout())
	}
	l.rows(newGrid(c.OutOrStdout(), l.tool.Env), []T{o}, !l.flags.bare)
	return nil
}
