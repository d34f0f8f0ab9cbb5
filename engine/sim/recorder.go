package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// Recorder records the data of a run's cycles that a report in one format needs. A Report without a Recorder keeps all plans: thousands of
// jobs that wait for thousands of cycles take gigabytes.
type Recorder interface {
	// record takes the next cycle that the report contains.
	record(r *Report, plan *model.Plan, c *cycle) error
	// write writes the report after the run.
	write(r *Report, out io.Writer) error
}

// NewRecorder returns a Recorder for one of Formats. The text of the cycles is stored in spool until the run ends; nil: in memory. The
// format html needs no spool, because the page contains a wait of many cycles only once.
func NewRecorder(format string, spool io.ReadWriteSeeker) (Recorder, error) {
	if spool == nil {
		spool = &memory{}
	}
	switch format {
	case "table", "wide":
		return &textRecorder{spool: spool, wide: format == "wide"}, nil
	case "json":
		return &jsonRecorder{spool: spool}, nil
	case "yaml":
		return &yamlRecorder{spool: spool}, nil
	case "html":
		return newPageRecorder(), nil
	}
	return nil, fmt.Errorf("%q is no format; there are %s", format, strings.Join(Formats(), ", "))
}

// Discard returns a Recorder that records nothing, for a caller that does not write the report.
func Discard() Recorder { return discard{} }

type discard struct{}

func (discard) record(*Report, *model.Plan, *cycle) error { return nil }

func (discard) write(*Report, io.Writer) error { return nil }

// memory is a spool that is not a file. It is read from the start, because a bytes.Buffer is.
type memory struct{ bytes.Buffer }

// Seek implements io.Seeker.
func (*memory) Seek(int64, int) (int64, error) { return 0, nil }

// replay copies all of a spool.
func replay(out io.Writer, spool io.ReadSeeker) error {
	_, err := spool.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(out, spool)
	}
	return err //nolint:wrapcheck // it names the file
}

// textRecorder records the tables of decisions.
type textRecorder struct {
	spool io.ReadWriteSeeker
	wide  bool
}

func (t *textRecorder) record(r *Report, _ *model.Plan, c *cycle) error {
	head := ""
	switch {
	case r.timed && len(c.lines) == 0:
		return nil
	case r.timed:
		head = fmt.Sprintf("cycle %d, after %s\n", c.number, lasted(c.after))
	case r.several:
		head = fmt.Sprintf("cycle %d\n", c.number)
	}
	_, err := io.WriteString(t.spool, head+table(c.lines, t.wide)+"\n")
	return err //nolint:wrapcheck // it names the file
}

func (t *textRecorder) write(r *Report, out io.Writer) error {
	if err := replay(out, t.spool); err != nil {
		return err
	}
	rest := ""
	if r.timed {
		rest = r.Timeline.text() + "\n"
	}
	rest += r.Summary.text(r.Timeline.Use)
	if text := r.complaints(); text != "" {
		rest += "\n" + text
	}
	_, err := io.WriteString(out, rest)
	return err //nolint:wrapcheck // it names the file
}

// jsonRecorder records the plans as elements of a list.
type jsonRecorder struct {
	spool io.ReadWriteSeeker
	plans int
}

func (j *jsonRecorder) record(_ *Report, plan *model.Plan, _ *cycle) error {
	text, err := indented(plan, "    ")
	if err != nil {
		return err
	}
	before := "\n    "
	if j.plans++; j.plans > 1 {
		before = "," + before
	}
	_, err = io.WriteString(j.spool, before+strings.TrimSuffix(text, "\n"))
	return err //nolint:wrapcheck // it names the file
}

func (j *jsonRecorder) write(r *Report, out io.Writer) error {
	text, err := indented(r.withoutPlans(), "")
	if err != nil {
		return err
	}
	return around(out, text, "\"plans\": [", "]", j.spool, map[bool]string{true: "\n  "}[j.plans > 0])
}

// indented returns a value as JSON. prefix begins all lines except the first.
func indented(v any, prefix string) (string, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("write the report as JSON: %w", err)
	}
	return out.String(), nil
}

// yamlRecorder records the plans as elements of a list.
type yamlRecorder struct{ spool io.ReadWriteSeeker }

func (y *yamlRecorder) record(_ *Report, plan *model.Plan, _ *cycle) error {
	text, err := yaml.Marshal([]*model.Plan{plan})
	if err != nil {
		return fmt.Errorf("write the report as YAML: %w", err)
	}
	_, err = y.spool.Write(text)
	return err //nolint:wrapcheck // it names the file
}

func (y *yamlRecorder) write(r *Report, out io.Writer) error {
	text, err := yaml.Marshal(r.withoutPlans())
	if err != nil {
		return fmt.Errorf("write the report as YAML: %w", err)
	}
	return around(out, strings.Replace(string(text), "\nplans: []\n", "\nplans:\n", 1), "\nplans:\n", "", y.spool, "")
}

// withoutPlans returns a report with an empty list of plans, so that the recorded plans can be inserted there.
func (r *Report) withoutPlans() *Report {
	out := *r
	out.Plans = []*model.Plan{}
	return &out
}

// around writes a text, and inserts a spool into the list that opening and closing enclose. last is written between the spool and closing.
func around(out io.Writer, text, opening, closing string, spool io.ReadSeeker, last string) error {
	head, tail, _ := strings.Cut(text, opening+closing)
	if _, err := io.WriteString(out, head+opening); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if err := replay(out, spool); err != nil {
		return err
	}
	_, err := io.WriteString(out, last+closing+tail)
	return err //nolint:wrapcheck // it names the file
}
