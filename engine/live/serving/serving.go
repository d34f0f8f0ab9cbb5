// Package serving decides which SchedulingPolicies of the cluster a scheduler obeys. It stores those that served as ControllerRevisions,
// puts new ones on trial, and reports their outcome in statuses and events.
package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celsius-scheduler/celsius/crds/policy/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/policy"
)

// Options configures Policies. Name, Scheduler and Namespace have defaults. Log, Wake and Now are optional; all other fields are required
// unless they say otherwise.
type Options struct {
	// Name is the name of the SchedulingPolicy that is served. "": default.
	Name string
	// Scheduler identifies this scheduler in the status of policies and in revisions. It is the first of the scheduler's names. "": celsius.
	Scheduler string
	// Namespace is the namespace of the revisions. It is created if it is missing. "": celsius-system.
	Namespace string
	// Cache contains the SchedulingPolicies as unstructured objects.
	Cache Cache
	// Reader reads from the API server without a cache.
	Reader client.Reader
	// Client writes objects.
	Client client.Client
	// Events records events for users.
	Events EventSink
	// Instead, if set, is called with the reason of condition Active if another policy serves in place of the stored one, or serves its
	// queues. "": none does.
	Instead func(reason string)
	// Metrics are the scheduler's metrics, which rollback conditions may read; nil: they are not read.
	Metrics *prometheus.Registry
	// Wake is called when a new policy serves. Current already returns it.
	Wake func()
	Log  logr.Logger
	// Now is the clock. nil: time.Now.
	Now func() time.Time
}

// Cache is the part of controller-runtime's cache that Policies uses.
type Cache interface {
	GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// EventSink is the part of client-go's record.EventRecorder that Policies uses.
type EventSink interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
}

// Reasons of the events about policies.
const (
	// eventActivated means that a generation began to serve.
	eventActivated = "PolicyActivated"
	// eventRejected means that a generation does not compile.
	eventRejected = "PolicyRejected"
	// eventFallback means that neither the selected object nor the previous policy serves.
	eventFallback = "PolicyFallback"
)

// The first and the longest wait before a failed step is tried again.
const (
	retryFirst = time.Second
	retryMost  = 30 * time.Second
)

// Policies follows the SchedulingPolicies of the cluster for one scheduler:
//
//	watch --> compile --> choose --> Current, Wake        (the next cycle adopts it when it begins)
//	                         |
//	                         +--> revisions, statuses, events
//
// All of this runs in the goroutine of Run. Any goroutine may call Current and Ready.
type Policies struct {
	o       Options
	current atomic.Pointer[policy.Policy]
	ready   chan struct{}
	cycles
	erring  rowErrors
	changed chan struct{}

	// compiled contains the newest generation seen of every policy, by UID.
	compiled map[types.UID]*candidate
	// serving is the source of Current. keep contains serving policies that must still be stored.
	serving *candidate
	keep    []*candidate
	// skipped contains the candidates that could not serve when serving was chosen.
	skipped []*candidate
	shipped *candidate
	kept    revisions
	reports map[types.UID]*report
	alongside
}

// alongside contains what exists next to the policy that serves all queues: shadows, guards, and policies for their own queues.
type alongside struct {
	shadows shadows
	guards  []*guard
	parts   beside
}

// New returns Policies that have seen no object yet.
func New(o Options) *Policies {
	o.Name = cmp.Or(o.Name, "default")
	o.Scheduler = cmp.Or(o.Scheduler, "celsius")
	o.Namespace = cmp.Or(o.Namespace, "celsius-system")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Instead == nil {
		o.Instead = func(string) {}
	}
	return &Policies{
		o: o, ready: make(chan struct{}), changed: make(chan struct{}, 1),
		compiled: map[types.UID]*candidate{}, reports: map[types.UID]*report{},
		kept: revisions{reader: o.Reader, client: o.Client, namespace: o.Namespace, scheduler: o.Scheduler},
	}
}

// Current returns the serving policy. It is never nil after Ready is closed. Any goroutine may call it; a cycle calls it once, when it
// begins.
func (p *Policies) Current() *policy.Policy { return p.current.Load() }

// Ready is closed when a policy serves.
func (p *Policies) Ready() <-chan struct{} { return p.ready }

// Run follows the policies until ctx ends; then it returns nil. Only the leading scheduler may run it, because it writes statuses. It
// returns an error if it could not start.
func (p *Policies) Run(ctx context.Context) error {
	if err := p.start(); err != nil {
		return err
	}
	informer, err := p.o.Cache.GetInformer(ctx, newObject())
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		if meta.IsNoMatchError(err) {
			err = fmt.Errorf("%w; is the CustomResourceDefinition schedulingpolicies.%s applied?", err, v1alpha1.GroupName)
		}
		return fmt.Errorf("watch SchedulingPolicies: %w", err)
	}
	handler, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.poke() },
		UpdateFunc: func(any, any) { p.poke() },
		DeleteFunc: func(any) { p.poke() },
	})
	if err != nil {
		return fmt.Errorf("watch SchedulingPolicies: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(handler) }()
	if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	p.follow(ctx)
	return nil
}

// start compiles the embedded default policy and validates the scheduler name.
func (p *Policies) start() error {
	if wrong := validation.IsDNS1123Label(p.o.Scheduler); len(wrong) > 0 {
		return fmt.Errorf("scheduler name %q: what served is kept under it, so it must be a DNS label: %s", p.o.Scheduler, wrong[0])
	}
	ships, issues := policy.Default()
	if ships == nil {
		return fmt.Errorf("the embedded default policy: %w", issues.Err())
	}
	doc, _ := policy.Embedded("default")
	data, err := dataOf(ships.Name, doc.Root.Get("spec").Any())
	if err != nil {
		return fmt.Errorf("the embedded default policy: %w", err)
	}
	p.shipped = &candidate{name: ships.Name, data: data, policy: ships, mode: v1alpha1.ModeActive}
	return nil
}

// poke signals that the policies in the cache changed.
func (p *Policies) poke() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// follow handles changes, and tries failed steps again.
func (p *Policies) follow(ctx context.Context) {
	wait := retryFirst
	for {
		var retry <-chan time.Time
		if err := p.step(ctx); err == nil {
			wait = retryFirst
		} else if ctx.Err() == nil {
			p.o.Log.Error(err, "Policies are not all as they should be; trying again", "in", wait)
			retry = time.After(wait)
			wait = min(2*wait, retryMost)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-retry:
		case <-p.nextLook():
		}
	}
}

// step updates everything from the cache: first the serving policy, then the revisions, then the statuses. A failure does not stop the
// rest.
func (p *Policies) step(ctx context.Context) error {
	objects, err := p.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	if !p.kept.loaded {
		errs = append(errs, p.kept.load(ctx))
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetName() == p.o.Name })
	var selected *candidate
	if i >= 0 {
		selected = p.compile(objects[i])
	}
	if selected != nil && selected.policy == nil && p.serving == nil && !p.kept.loaded {
		return errors.Join(append(errs,
			fmt.Errorf("%s does not compile, and what served before it is not known yet: nothing is scheduled until it is", selected))...)
	}
	all := make([]*candidate, len(objects))
	for i, u := range objects {
		all[i] = p.compile(u)
	}
	errs = append(errs, p.choose(ctx, selected, all))
	taken, err := p.takeBack(ctx)
	errs = append(errs, err)
	if taken {
		errs = append(errs, p.choose(ctx, selected, all))
	}
	p.shadows.follow(all, p.Current())
	for _, u := range objects {
		errs = append(errs, p.report(ctx, u, p.compile(u)))
	}
	p.forget(objects)
	if p.kept.loaded {
		errs = append(errs, p.kept.trim(ctx, append(slices.Collect(maps.Values(p.compiled)), p.serving)))
	}
	return errors.Join(errs...)
}

// choose selects the serving policies, puts them on trial where needed, and stores them. It returns an error if something could not be
// stored.
func (p *Policies) choose(ctx context.Context, selected *candidate, all []*candidate) error {
	parts := p.partsOf(all)
	chosen := parts
	if selected != nil {
		chosen = append([]*candidate{selected}, parts...)
	}
	for _, c := range chosen {
		if p.kept.loaded {
			c.faulty, c.takenBack = p.kept.faultyOf(c), p.kept.takenBack(c)
		}
	}
	next := p.parts.join(choose(selected, p.before(), p.shipped), selected, parts)
	p.serve(next, selected)
	p.guarding(slices.DeleteFunc(next.all(), func(c *candidate) bool { return !slices.Contains(chosen, c) }))
	ofParts := fallBack(p, parts)
	p.o.Instead(cmp.Or(notServed(selected), ofParts))
	var err error
	for err == nil && len(p.keep) > 0 && p.kept.loaded {
		if err = p.kept.add(ctx, p.keep[0]); err == nil {
			p.keep = p.keep[1:]
		}
	}
	return err
}

func (p *Policies) list(ctx context.Context) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("SchedulingPolicyList"))
	if err := p.o.Cache.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list SchedulingPolicies: %w", err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// before returns the policies that served, newest first: the current one, then the stored ones.
func (p *Policies) before() iter.Seq[*candidate] {
	return func(yield func(*candidate) bool) {
		if p.serving != nil && !yield(p.serving) {
			return
		}
		for _, r := range p.kept.newest {
			if c := p.kept.candidate(r, p.shipped); !c.ofQueues && !c.same(p.serving) && !yield(c) {
				return
			}
		}
	}
}

// compile returns the newest generation of an object. It compiles each generation once.
func (p *Policies) compile(u *unstructured.Unstructured) *candidate {
	if c := p.compiled[u.GetUID()]; c != nil && c.generation == u.GetGeneration() {
		return c
	}
	c := fromObject(u)
	p.compiled[u.GetUID()] = c
	return c
}

// forget drops the data of deleted objects.
func (p *Policies) forget(objects []*unstructured.Unstructured) {
	gone := func(uid types.UID) bool {
		return !slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetUID() == uid })
	}
	for uid := range p.compiled {
		if gone(uid) {
			delete(p.compiled, uid)
			delete(p.reports, uid)
		}
	}
}

// serve makes a choice the one that cycles obey, and reports it if it changed.
func (p *Policies) serve(c choice, selected *candidate) {
	old := p.current.Load()
	sameParts := slices.Equal(p.parts.serving, c.parts) && slices.Equal(p.parts.kept, c.kept)
	if old != nil && p.serving == c.serving && old.Mode == c.policy.Mode && sameParts {
		return
	}
	last := p.begin(c, c.serving == selected || selected == nil)
	if old == nil {
		close(p.ready)
	}
	p.o.Wake()
	log := p.o.Log.WithValues("policy", c.serving.String(), "mode", c.policy.Mode, "rules", c.policy.RuleCount())
	for _, part := range c.parts {
		log = log.WithValues("queuesOf/"+part.name, part.String())
	}
	for _, s := range c.skipped {
		log.Info("A policy that served before does not compile under this version; passed over", "passedOver", s.String(),
			"mistakes", s.issues.Error())
	}
	switch {
	case c.serving == selected:
		log.Info("Serving the stored policy")
	case selected != nil:
		log.Info("Serving a policy in place of the stored one", "stored", selected.String(), "because", notServed(selected))
		if old == nil || last != c.serving {
			p.o.Events.Eventf(policyRef(selected.name, selected.uid), corev1.EventTypeWarning, eventFallback, "%s",
				cut(fallbackMessage(c, selected), mostEvent))
		}
	default:
		log.Info("Serving the embedded default, because no such policy is stored", "missing", p.o.Name)
		p.missing(last)
	}
}

// begin puts a choice into effect and returns the policy that served before. A policy that serves by choice is stored; a replacement is
// not.
func (p *Policies) begin(c choice, byChoice bool) (last *candidate) {
	last = p.serving
	if last != c.serving {
		p.skipped = c.skipped
	}
	p.erring.serve(c)
	if last == nil {
		last = p.kept.last()
	}
	p.serving = c.serving
	keep := slices.Clone(c.parts)
	if byChoice || slices.Contains(p.keep, c.serving) {
		keep = append(keep, c.serving)
	}
	p.keep = keep
	p.parts.serving, p.parts.kept = c.parts, c.kept
	p.current.Store(c.policy)
	return last
}

// missing reports that the selected object does not exist, unless it never existed.
func (p *Policies) missing(last *candidate) {
	if last == nil && p.o.Name == p.shipped.name || last.same(p.shipped) {
		return
	}
	ref := policyRef(p.o.Name, "")
	message := fmt.Sprintf("there is no SchedulingPolicy %q: scheduler %s serves the embedded default until one is created",
		p.o.Name, p.o.Scheduler)
	if last != nil && last.name == p.o.Name {
		ref = policyRef(p.o.Name, last.uid)
		message = fmt.Sprintf("SchedulingPolicy %q is deleted: scheduler %s serves the embedded default in place of %s", p.o.Name,
			p.o.Scheduler, last)
	}
	p.o.Events.Eventf(ref, corev1.EventTypeWarning, eventFallback, "%s", message)
}
