package flows

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
	"sigs.k8s.io/controller-runtime/pkg/log"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	"github.com/celsius-scheduler/celsius/engine/live/recovery"
)

// The time limits of one pod and of all pods of a flow, the interval of repeated probes, and the interval to check for results.
const (
	probeWithin  = 2 * time.Second
	probesWithin = 20 * time.Second
	probeAgain   = 5 * time.Second
	probeLook    = 500 * time.Millisecond
)

// mostProbes is how many flows of one namespace are probed at the same time. Thus pods that do not answer do not delay other namespaces.
const mostProbes = 4

// prober probes the pods of Jobs in the background. No reconcile waits for a pod that does not answer.
type prober struct {
	Shared
	now func() time.Time

	mu sync.Mutex
	// asked contains the results of probes, by JobFlow.
	asked map[types.NamespacedName]*answers
	// busy counts the running probes by namespace.
	busy map[string]int
}

// answers contains the results of one JobFlow's probes, by the name of the waiting flow. Results of another generation are dropped.
type answers struct {
	uid        types.UID
	generation int64
	byFlow     map[string]*answer
}

// answer is the result of a probe. why is "" if it succeeded.
type answer struct {
	done bool
	at   time.Time
	why  string
}

func newProber(s Shared) *prober {
	return &prober{Shared: s, now: time.Now, asked: map[types.NamespacedName]*answers{}, busy: map[string]int{}}
}

// forget removes the results of a deleted JobFlow.
func (p *prober) forget(flow types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, flow)
}

// answers returns the results for the present generation of a JobFlow.
func (p *prober) answers(of *flowv1alpha1.JobFlow) map[string]*answer {
	key := client.ObjectKeyFromObject(of)
	known := p.asked[key]
	if known == nil || known.uid != of.UID || known.generation != of.Generation {
		known = &answers{of.UID, of.Generation, map[string]*answer{}}
		p.asked[key] = known
	}
	return known.byFlow
}

// ask reports whether a probe succeeds for Jobs that are not Completed yet. Otherwise it returns the cause, and when to ask again: 0 means
// when one of the Jobs changes.
func (p *prober) ask(ctx context.Context, of *flowv1alpha1.JobFlow, f *flowv1alpha1.Flow, jobs []*batchv1alpha1.Job) (
	holds bool, why string, again time.Duration,
) {
	probe := f.DependsOn.Probe
	for _, job := range jobs {
		if !isAbout(probe, job) {
			return false, "", 0
		}
		for _, s := range probe.TaskStatusList {
			if why := phaseMissing(job, s); why != "" {
				return false, why, 0
			}
		}
	}
	if len(probe.HTTPGetList)+len(probe.TCPSocketList) == 0 {
		return true, "", 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.answers(of)
	known := asked[f.Name]
	switch {
	case known != nil && known.done && known.why == "":
		return true, "", 0
	case known != nil && !known.done || p.busy[of.Namespace] >= mostProbes:
		return false, "", probeLook
	case known != nil && p.now().Sub(known.at) < probeAgain:
		return false, known.why, probeAgain
	}
	begun := &answer{}
	asked[f.Name] = begun
	p.busy[of.Namespace]++
	go p.run(context.WithoutCancel(ctx), of.Namespace, begun, jobs, probe.DeepCopy())
	return false, "", probeLook
}

// task returns the task of a Job with that name, or nil.
func task(job *batchv1alpha1.Job, name string) *batchv1alpha1.TaskSpec {
	for i := range job.Spec.Tasks {
		if job.Spec.Tasks[i].Name == name {
			return &job.Spec.Tasks[i]
		}
	}
	return nil
}

// isAbout reports whether a probe applies to a Job. A flow waits until a Job without a probe is Completed.
func isAbout(probe *flowv1alpha1.Probe, job *batchv1alpha1.Job) bool {
	return slices.ContainsFunc(probe.TaskStatusList, func(s flowv1alpha1.TaskStatus) bool { return task(job, s.TaskName) != nil }) ||
		slices.ContainsFunc(probe.HTTPGetList, func(h flowv1alpha1.HTTPGet) bool { return task(job, h.TaskName) != nil }) ||
		slices.ContainsFunc(probe.TCPSocketList, func(s flowv1alpha1.TCPSocket) bool { return task(job, s.TaskName) != nil })
}

// phaseMissing reports that no pod of a task is in the required phase, or returns "".
func phaseMissing(job *batchv1alpha1.Job, s flowv1alpha1.TaskStatus) string {
	if task(job, s.TaskName) == nil || job.Status.TaskStatusCount[s.TaskName].Phase[corev1.PodPhase(s.Phase)] > 0 {
		return ""
	}
	return fmt.Sprintf("no pod of task %s of job %s is %s", s.TaskName, job.Name, s.Phase)
}

func (p *prober) run(ctx context.Context, namespace string, into *answer, jobs []*batchv1alpha1.Job, probe *flowv1alpha1.Probe) {
	ctx, cancel := context.WithTimeout(ctx, probesWithin)
	defer cancel()
	why := ""
	if failed := recovery.Catch(recovery.Reconciler, func() { why = p.try(ctx, jobs, probe) }); failed != nil {
		why = failed.Error()
		log.FromContext(ctx).Error(nil, "a probe failed", "cause", why, "stack", failed.Stack)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	into.done, into.at, into.why = true, p.now(), why
	if p.busy[namespace]--; p.busy[namespace] == 0 {
		delete(p.busy, namespace)
	}
}

// try probes every pod.
func (p *prober) try(ctx context.Context, jobs []*batchv1alpha1.Job, probe *flowv1alpha1.Probe) string {
	for _, job := range jobs {
		for _, s := range probe.TCPSocketList {
			if why := p.each(ctx, job, s.TaskName, s.Port, p.connect); why != "" {
				return why
			}
		}
		for _, h := range probe.HTTPGetList {
			get := func(ctx context.Context, address string) error { return p.get(ctx, address, h) }
			if why := p.each(ctx, job, h.TaskName, h.Port, get); why != "" {
				return why
			}
		}
	}
	return ""
}

// each probes all pods of a task of a Job at the addresses that their nodes gave them. It connects to no other address, so that the author
// of a flow can only reach pods of the flow's own Jobs. A pod with host network has its node's address and is not probed.
func (p *prober) each(ctx context.Context, job *batchv1alpha1.Job, name string, port int32,
	ask func(ctx context.Context, address string) error,
) string {
	wanted := task(job, name)
	if wanted == nil {
		return ""
	}
	pods := &corev1.PodList{}
	if err := p.Client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingFields{p.ByOwner: string(job.UID)}); err != nil {
		return fmt.Sprintf("the pods of job %s could not be listed: %s", job.Name, err)
	}
	answered := int32(0)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Labels[batchv1alpha1.TaskSpecKey] != name {
			continue
		}
		if why := unasked(pod); why != "" {
			return fmt.Sprintf("pod %s %s", pod.Name, why)
		}
		if err := ask(ctx, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port)))); err != nil {
			return fmt.Sprintf("pod %s does not answer at port %d: %s", pod.Name, port, err)
		}
		answered++
	}
	if answered < wanted.Replicas {
		return fmt.Sprintf("of task %s of job %s there are %d of %d pods", name, job.Name, answered, wanted.Replicas)
	}
	return ""
}

// unasked returns why a pod is not probed, or "".
func unasked(pod *corev1.Pod) string {
	address, err := netip.ParseAddr(pod.Status.PodIP)
	switch {
	case pod.Spec.HostNetwork:
		return "is on the network of its node, where nothing is probed"
	case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
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
	conn, err := p.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// get requests a path at that address. It uses no proxy, follows no redirect, and reads only the status of the answer.
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
	transport := &http.Transport{DialContext: p.Dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10}
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
