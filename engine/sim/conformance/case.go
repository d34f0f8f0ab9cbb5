package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Case is one recorded case: objects and a configuration as input, and what Volcano did as output.
type Case struct {
	ID     string
	Mode   string // actions, calls, session-dump or open-only; scores for a row of tables/scores.jsonl
	Origin struct {
		Package    string
		RecordedAt time.Time // the current time for everything that depends on time
	}
	Notes    []string
	Input    Input
	InputRef string // for a derived case, the case with its input
	Config   Config
	Check    struct {
		Kind string // CheckAll and observe: phases are from after the close of the cycle; else from before it
	}
	Observed Observed
	// Profile is the configuration of a derived case; "" for other cases.
	Profile string
	// Scored is the subject of a case of mode scores; nil for other cases.
	Scored *Scored
	// started is when the case's package was run, derived from usage samples. Zero: no sample shows it.
	started time.Time
}

// Input contains the objects of a case, in the order of their creation. Objects that only decide whether a case can be replayed are not
// decoded.
type Input struct {
	Pods            []*corev1.Pod
	Nodes           []*corev1.Node
	PodGroups       []*v1beta1.PodGroup
	Queues          []*v1beta1.Queue
	PriorityClasses []*schedulingv1.PriorityClass
	ResourceQuotas  []*corev1.ResourceQuota

	PersistentVolumes      []*corev1.PersistentVolume
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	StorageClasses         []*storagev1.StorageClass

	ResourceSlices, DeviceClasses, ResourceClaims []json.RawMessage
	HyperNodes                                    []json.RawMessage
	HyperNodeInfo                                 map[string]json.RawMessage
	Sharding                                      json.RawMessage
}

// Config is the configuration of a case. In a derived case, Profile names the rest.
type Config struct {
	Actions          []string        `json:"actions"`
	Tiers            json.RawMessage `json:"tiers"`
	Configurations   json.RawMessage `json:"configurations"`
	Profile          string          `json:"profile"`
	HierarchyEnabled bool            `json:"hierarchyEnabled"`
	ServerOptions    struct {
		SchedulerNames []string
		ShardingMode   string
	} `json:"serverOptions"`
}

// Observed contains what Volcano did.
type Observed struct {
	Binds          map[string]string // pod -> node
	Evicts         []string
	Pipelined      map[string]string // pod -> node
	PodGroupPhases map[string]string
	Jobs           map[string]Job
	Nodes          map[string]NodeUse
	Stable         *bool // the same outcome in every run; absent if this was not checked
	TiesPossible   bool  // nodes may differ even if stable
	Invariants     *Invariants
	Trace          []Decision
	TestCalls      []Call
	// TestCallVariants contains the answers of all runs, if they differ.
	TestCallVariants []struct{ Calls []Call }
	Failures         map[string]any `json:"predicateFailures"`
	NodeUsage        map[string]NodeUsage
}

// NodeUsage is the measured usage of a node, in percent, by the period of the measurement. It has only one period.
type NodeUsage struct {
	CPU         map[string]float64
	Mem         map[string]float64
	MetricsTime time.Time
}

// Job is a PodGroup at the end of a case.
type Job struct {
	Phase        string
	Tasks        map[string]map[string]string // status -> pod -> node
	MinAvailable int64
	FitErrors    map[string]string
}

// NodeUse contains a node's amounts at the end of a case, written as "cpu 1000.00, memory 0.00".
type NodeUse struct{ Idle, Used, Releasing, Pipelined string }

// Invariants contains what was equal in all runs of a case whose outcome varies. A missing part varied.
type Invariants struct {
	BoundPods          []string
	BindCount          *int
	Evicts             []string
	EvictCount         *int
	PipelinedPods      []string
	PodGroupPhases     map[string]string
	BindsPerNodeSorted []int
}

// Decision is one entry of the trace. It has the fields that show whether anything was refused, scored or displaced, and its text.
type Decision struct {
	Kind   string
	Vote   float64
	Result *bool
	Pass   *bool
	Text   string
}

// UnmarshalJSON stores the text in addition to the fields.
func (d *Decision) UnmarshalJSON(data []byte) error {
	type fields Decision
	if err := json.Unmarshal(data, (*fields)(d)); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return err
	}
	d.Text = text.String()
	return nil
}

// Call is one question that the test asked the session directly.
type Call struct {
	Fn     string
	Task   string
	Node   string
	Job    string
	Queue  string
	L, R   string // the two sides of an order
	Score  *float64
	Result json.RawMessage
	Error  *string
}

// profile is a complete configuration of derived cases.
type profile struct {
	Actions        []string        `json:"actions"`
	Tiers          json.RawMessage `json:"tiers"`
	Configurations json.RawMessage `json:"configurations"`
}

// Load reads the folder of cases: cases/*.json, derived/*.jsonl with derived/profiles.json, and tables/scores.jsonl. Each row of the latter
// is a case of mode scores. The cases are ordered by ID. Errors name file, line and case.
func Load(dir string) ([]*Case, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.json"))
	if err != nil {
		return nil, err
	}
	var out []*Case
	byID := map[string]*Case{}
	var problems []error
	for _, file := range files {
		c, err := readCase(file)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out, byID[c.ID] = append(out, c), c
	}
	setClocks(out)
	derived, err := loadDerived(filepath.Join(dir, "derived"), byID)
	problems = append(problems, err)
	scores, err := loadScores(filepath.Join(dir, "tables", "scores.jsonl"), byID)
	problems = append(problems, err)
	out = append(append(out, derived...), scores...)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no case in it (cases/*.json, derived/*.jsonl)", dir)
	}
	slices.SortFunc(out, func(a, b *Case) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

func readCase(file string) (*Case, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Case{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, jsonError(data, err))
	}
	if c.ID == "" || c.Mode == "" {
		return nil, fmt.Errorf("%s: a case needs id and mode", file)
	}
	return c, nil
}

// jsonError adds the line to an error that only contains its offset.
func jsonError(data []byte, err error) error {
	offset := int64(-1)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte("\n")), err)
}

func loadDerived(dir string, byID map[string]*Case) ([]*Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "profiles.json"))
	if err != nil {
		return nil, err
	}
	profiles := map[string]profile{}
	if err := json.Unmarshal(data, &profiles); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, "profiles.json"), jsonError(data, err))
	}
	var out []*Case
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
			c, err := readDerived(line, profiles, byID)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// readDerived adds the input and the configuration of a derived case, which are stored elsewhere.
func readDerived(line []byte, profiles map[string]profile, byID map[string]*Case) (*Case, error) {
	c := &Case{}
	if err := json.Unmarshal(line, c); err != nil {
		return nil, err
	}
	p, ok := profiles[c.Config.Profile]
	if !ok {
		return nil, fmt.Errorf("case %s: profiles.json has no profile %q", c.ID, c.Config.Profile)
	}
	base, ok := byID[strings.TrimSuffix(filepath.Base(c.InputRef), ".json")]
	if !ok {
		return nil, fmt.Errorf("case %s: there is no %s", c.ID, c.InputRef)
	}
	c.Profile, c.Input, c.Origin.Package = c.Config.Profile, base.Input, "derived/"+c.Config.Profile
	c.Config.Actions, c.Config.Tiers, c.Config.Configurations = p.Actions, p.Tiers, p.Configurations
	return c, nil
}

// Effective reports whether anything was bound, evicted, refused or scored. Otherwise passing means nothing.
func (c *Case) Effective() bool {
	o := c.Observed
	if c.Scored != nil {
		return true
	}
	if len(o.Binds)+len(o.Evicts)+len(o.Pipelined)+len(o.TestCalls)+len(o.Failures) > 0 {
		return true
	}
	for _, j := range o.Jobs {
		if len(j.FitErrors) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(o.Trace, Decision.effective)
}

// effective reports whether the decision is a score or a refusal.
func (d Decision) effective() bool {
	switch d.Kind {
	case "nodeScores", "discard":
		return true
	case "jobEnqueueable":
		return d.Vote < 0
	case "allocatable", "preemptive":
		return d.Result != nil && !*d.Result
	case "overused":
		return d.Result != nil && *d.Result
	case "jobValid":
		return d.Pass != nil && !*d.Pass
	}
	return false
}

// AfterClose reports whether the recorded phases are from after the close of the cycle.
func (c *Case) AfterClose() bool { return c.Check.Kind == "CheckAll" || c.Check.Kind == "observe" }

// Loose reports whether nodes may differ, because Volcano chooses among equal nodes at random.
func (c *Case) Loose() bool {
	return c.Observed.TiesPossible || c.Observed.Stable != nil && !*c.Observed.Stable
}

// Package returns the short name of the case's package.
func (c *Case) Package() string { return strings.TrimPrefix(c.Origin.Package, "pkg/scheduler/") }
