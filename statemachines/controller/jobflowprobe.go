package controller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
)

// How long one pod may take to answer, all of a flow's together, and after how long is asked again.
const (
	probeWithin  = 2 * time.Second
	probesWithin = 20 * time.Second
	probeAgain   = 5 * time.Second
	probeLook    = 500 * time.Millisecond
)

// mostProbes is how many flows are probed at the same time.
const mostProbes = 16

// prober asks the pods of Jobs what flows want to know of them, beside the reconciles: nobody waits for a pod that does not answer.
type prober struct {
	reader client.Reader
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	now    func() time.Time
	turns  chan struct{}

	mu    sync.Mutex
	asked map[probeKey]*answer
}

type probeKey struct {
	flow types.NamespacedName
	uid  types.UID
	name string
	// generation is that of the flow: of another probe nothing is known.
	generation int64
}

// answer is what came of a probe; why is "" where it holds.
type answer struct {
	done bool
	at   time.Time
	why  string
}

func newProber(reader client.Reader) *prober {
	return &prober{
		reader: reader, dial: (&net.Dialer{Timeout: probeWithin}).DialContext, now: time.Now, turns: make(chan struct{}, mostProbes),
		asked: map[probeKey]*answer{},
	}
}

// forget drops what is known of a flow that is gone.
func (p *prober) forget(flow types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.asked {
		if key.flow == flow {
			delete(p.asked, key)
		}
	}
}

// ask says why the probe of a flow does not hold, and when to ask again; never where it holds.
func (p *prober) ask(ctx context.Context, w *flowWorld, f *flowv1alpha1.Flow) (why string, again time.Duration) {
	if f.DependsOn == nil || f.DependsOn.Probe == nil {
		return "", 0
	}
	probe := f.DependsOn.Probe
	var targets []*batchv1alpha1.Job
	for _, name := range f.DependsOn.Targets {
		if job := w.jobs[w.jobName(name)]; job != nil {
			targets = append(targets, job)
		}
	}
	for _, s := range probe.TaskStatusList {
		if why := phaseMissing(targets, s); why != "" {
			return why, probeAgain
		}
	}
	if len(probe.HTTPGetList)+len(probe.TCPSocketList) == 0 {
		return "", 0
	}
	key := probeKey{client.ObjectKeyFromObject(w.flow), w.flow.UID, f.Name, w.flow.Generation}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.asked[key]
	switch {
	case known != nil && known.done && known.why == "":
		return "", 0
	case known != nil && !known.done:
		return "", probeLook
	case known != nil && p.now().Sub(known.at) < probeAgain:
		return known.why, probeAgain
	}
	begun := &answer{}
	p.asked[key] = begun
	go p.run(context.WithoutCancel(ctx), begun, targets, *probe.DeepCopy())
	return "", probeLook
}

// phaseMissing says which Job has no pod in a phase.
func phaseMissing(targets []*batchv1alpha1.Job, s flowv1alpha1.TaskStatus) string {
	found := false
	for _, job := range targets {
		counts, has := job.Status.TaskStatusCount[s.TaskName]
		if !has {
			continue
		}
		if found = true; counts.Phase[corev1.PodPhase(s.Phase)] == 0 {
			return fmt.Sprintf("no pod of task %s of job %s is %s", s.TaskName, job.Name, s.Phase)
		}
	}
	if !found {
		return fmt.Sprintf("no job that it depends on has a pod of a task %s", s.TaskName)
	}
	return ""
}

func (p *prober) run(ctx context.Context, into *answer, targets []*batchv1alpha1.Job, probe flowv1alpha1.Probe) {
	p.turns <- struct{}{}
	defer func() { <-p.turns }()
	ctx, cancel := context.WithTimeout(ctx, probesWithin)
	defer cancel()
	why := p.try(ctx, targets, probe)
	p.mu.Lock()
	defer p.mu.Unlock()
	into.done, into.at, into.why = true, p.now(), why
}

// try asks every pod.
func (p *prober) try(ctx context.Context, targets []*batchv1alpha1.Job, probe flowv1alpha1.Probe) string {
	for _, s := range probe.TCPSocketList {
		if why := p.each(ctx, targets, s.TaskName, s.Port, p.connect); why != "" {
			return why
		}
	}
	for _, h := range probe.HTTPGetList {
		get := func(ctx context.Context, address string) error { return p.get(ctx, address, h) }
		if why := p.each(ctx, targets, h.TaskName, h.Port, get); why != "" {
			return why
		}
	}
	return ""
}

// each asks the pods of a task of the targets, by the addresses that their nodes gave them, and no others: whoever writes a flow has
// nothing reached that is not a pod of a Job of the same flow. A pod on its node's network has the node's address, and is not asked.
func (p *prober) each(ctx context.Context, targets []*batchv1alpha1.Job, task string, port int32,
	ask func(ctx context.Context, address string) error,
) string {
	found := false
	for _, job := range targets {
		pods := &corev1.PodList{}
		if err := p.reader.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{byOwner: string(job.UID)}); err != nil {
			return fmt.Sprintf("the pods of job %s could not be listed: %s", job.Name, err)
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if pod.Labels[batchv1alpha1.TaskSpecKey] != task {
				continue
			}
			found = true
			if why := unasked(pod); why != "" {
				return fmt.Sprintf("pod %s %s", pod.Name, why)
			}
			if err := ask(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))); err != nil {
				return fmt.Sprintf("pod %s does not answer at port %d: %s", pod.Name, port, err)
			}
		}
	}
	if !found {
		return fmt.Sprintf("no job that it depends on has a pod of task %s", task)
	}
	return ""
}

// unasked says why a pod is not asked; "" where it is.
func unasked(pod *corev1.Pod) string {
	address, err := netip.ParseAddr(pod.Status.PodIP)
	switch {
	case pod.Spec.HostNetwork:
		return "is on the network of its node, where nothing is probed"
	case deleting(pod) || pod.Status.Phase != corev1.PodRunning:
		return "does not run"
	case err != nil:
		return "has no address yet"
	case slices.ContainsFunc(pod.Status.HostIPs, func(h corev1.HostIP) bool { return h.IP == pod.Status.PodIP }),
		pod.Status.HostIP == pod.Status.PodIP, address.IsLoopback(), address.IsLinkLocalUnicast(), address.IsMulticast(),
		address.IsUnspecified(), address.Is4In6():
		return "has an address that is none of a pod, " + pod.Status.PodIP
	}
	return ""
}

func (p *prober) connect(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// get asks for a path, at that address alone: no proxy, and no redirect is followed. Nothing that is answered but the status is read.
func (p *prober) get(ctx context.Context, address string, h flowv1alpha1.HTTPGet) error {
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	path, query, _ := strings.Cut(h.Path, "?")
	at := url.URL{Scheme: "http", Host: address, Path: "/" + strings.TrimPrefix(path, "/"), RawQuery: query}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	if h.HTTPHeader != nil && h.HTTPHeader.Name != "" {
		if strings.EqualFold(h.HTTPHeader.Name, "Host") {
			req.Host = h.HTTPHeader.Value
		} else {
			req.Header.Set(h.HTTPHeader.Name, h.HTTPHeader.Value)
		}
	}
	transport := &http.Transport{DialContext: p.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
	defer transport.CloseIdleConnections()
	once := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := once.Do(req)
	if err != nil {
		return err //nolint:wrapcheck // it says what was asked
	}
	defer answer.Body.Close() //nolint:errcheck // nothing of it is read
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s gives status %d; 200 to 399 is wanted", at.Path, answer.StatusCode)
	}
	return nil
}
