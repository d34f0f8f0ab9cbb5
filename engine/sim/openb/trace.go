package openb

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names of files in a trace directory. The pod list of workload W is podListPrefix + W + ".csv".
const (
	nodeListFile  = "openb_node_list_gpu_node.csv"
	podListPrefix = "openb_pod_list_"
	publishedFile = "expected-allocation.csv"
)

// defaultWorkload is the recorded pod list. The others were derived from it.
const defaultWorkload = "default"

// wholeDevice is one GPU in thousandths. If a pod of the trace requests more of one device, it means the whole device.
const wholeDevice = 1000

// largest is the largest number that a file may contain. Sums of many such numbers still fit in an int64.
const largest = 1_000_000_000

// Node is a machine of the cluster.
type Node struct {
	Name      string
	CPUMilli  int64 // thousandths of a core
	MemoryMiB int64
	GPUs      int    // devices
	Model     string // the model of all its devices
}

// Pod is a row of a pod list.
type Pod struct {
	Name      string
	CPUMilli  int64 // thousandths of a core
	MemoryMiB int64
	GPUs      int64  // devices
	GPUMilli  int64  // thousandths of each device, at most 1000; 0 without GPUs
	Models    string // allowed models, separated by |; empty: any
}

// Demand returns the pod's request for GPUs, in thousandths of a device.
func (p Pod) Demand() int64 { return p.GPUs * p.GPUMilli }

// Trace is the cluster and one workload, in name order, as recorded.
type Trace struct {
	Workload string
	Nodes    []Node
	Pods     []Pod
	devices  int64 // thousandths of a device, over all nodes
}

// Workloads returns the workloads with a pod list in a directory: the default one first, then by name.
func Workloads(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, podListPrefix+"*.csv"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), podListPrefix), ".csv"))
	}
	slices.Sort(out)
	if i := slices.Index(out, defaultWorkload); i > 0 {
		out = slices.Insert(slices.Delete(out, i, i+1), 0, defaultWorkload)
	}
	return out, nil
}

// Load reads the cluster and the pod list of a workload ("default", "cpu100", ...) from a directory. Errors name file, line and column. If
// the directory does not exist, the error is fs.ErrNotExist.
func Load(dir, workload string) (*Trace, error) {
	t := &Trace{Workload: workload}
	err := readTable(filepath.Join(dir, nodeListFile), []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, func(r *record) {
		t.Nodes = append(t.Nodes, Node{
			Name: r.text("sn"), CPUMilli: r.count("cpu_milli"), MemoryMiB: r.count("memory_mib"),
			GPUs: int(r.count("gpu")), Model: r.text("model"),
		})
	})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, podListPrefix+workload+".csv")
	err = readTable(path, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, func(r *record) {
		t.Pods = append(t.Pods, readPod(r))
	})
	if err != nil {
		return nil, errors.Join(err, t.otherWorkloads(dir, err))
	}
	slices.SortFunc(t.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(t.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range t.Nodes {
		t.devices += int64(n.GPUs) * wholeDevice
	}
	// A run adds copies of pods until they request more than all devices.
	if t.devices == 0 || !slices.ContainsFunc(t.Pods, func(p Pod) bool { return p.GPUs > 0 }) {
		return nil, fmt.Errorf("%s: a trace needs GPUs and pods that ask for some, found %d devices and %d pods", dir,
			t.devices/wholeDevice, len(t.Pods))
	}
	return t, nil
}

func readPod(r *record) Pod {
	p := Pod{
		Name: r.text("name"), CPUMilli: r.count("cpu_milli"), MemoryMiB: r.count("memory_mib"),
		GPUs: r.count("num_gpu"), GPUMilli: min(r.count("gpu_milli"), wholeDevice), Models: r.optional("gpu_spec"),
	}
	if p.GPUs == 0 {
		// A pod without a GPU can use any node, even if it names models.
		p.GPUMilli, p.Models = 0, ""
	}
	if p.GPUs > 0 && p.GPUMilli == 0 {
		r.fail("gpu_milli", "must be above 0 where num_gpu is %d", p.GPUs)
	}
	return p
}

// otherWorkloads returns an error that lists the existing workloads, if the requested one does not exist.
func (t *Trace) otherWorkloads(dir string, err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	names, globErr := Workloads(dir)
	if len(names) == 0 {
		return globErr
	}
	return fmt.Errorf("workload %q is not there; there are: %s", t.Workload, strings.Join(names, ", "))
}

// record is one line of a table with a header. It keeps the first mistake in the line.
type record struct {
	path    string
	columns map[string]int
	fields  []string
	at      func(field int) (line, column int)
	err     error
}

func (r *record) fail(column, format string, args ...any) {
	if r.err != nil {
		return
	}
	line, col := r.at(r.columns[column])
	r.err = fmt.Errorf("%s:%d:%d: %s: %s", r.path, line, col, column, fmt.Sprintf(format, args...))
}

func (r *record) optional(column string) string {
	i, ok := r.columns[column]
	if !ok {
		return ""
	}
	return r.fields[i]
}

func (r *record) text(column string) string {
	s := r.optional(column)
	if s == "" {
		r.fail(column, "must not be empty")
	}
	return s
}

func (r *record) count(column string) int64 {
	s := r.optional(column)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		r.fail(column, "must be a whole number from 0, found %q", s)
	}
	if n > largest {
		r.fail(column, "must be at most %d, found %d", int64(largest), n)
	}
	return n
}

func (r *record) number(column string) float64 {
	s := r.optional(column)
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		r.fail(column, "must be a number, found %q", s)
	}
	return x
}

// readTable calls row for each line of a CSV file. The header must contain the needed columns, and may contain others.
func readTable(path string, needed []string, row func(*record)) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	in := csv.NewReader(bytes.NewReader(data))
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("%s: no header line: %w", path, err)
	}
	r := &record{path: path, columns: map[string]int{}, at: in.FieldPos}
	for i, name := range header {
		r.columns[name] = i
	}
	for _, name := range needed {
		if _, ok := r.columns[name]; !ok {
			return fmt.Errorf("%s:1:1: the header lacks column %q", path, name)
		}
	}
	for {
		r.fields, err = in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if row(r); r.err != nil {
			return r.err
		}
	}
}
