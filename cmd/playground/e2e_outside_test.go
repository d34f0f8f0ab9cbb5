package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nodeinfov1alpha1 "github.com/celsius-scheduler/celsius/crds/nodeinfo/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/live"
)

// says waits until the condition of a waiting pod contains all the words.
func (e *evictions) says(pod string, words ...string) {
	e.t.Helper()
	e.Wait(pod+" says why it waits", func() error {
		p := &corev1.Pod{}
		if err := e.Get(pod, p); err != nil {
			return err
		}
		message := waitsFor(p)
		lacks := func(w string) bool { return !strings.Contains(message, w) }
		if p.Spec.NodeName != "" || slices.ContainsFunc(words, lacks) {
			return fmt.Errorf("on node %q it says %q, want %q", p.Spec.NodeName, message, words)
		}
		return nil
	})
}

// areOn fails the test unless each node has the given number of pods of a crew.
func (e *evictions) areOn(crew string, want map[string]int) {
	e.t.Helper()
	got := map[string]int{}
	for _, p := range e.Pods("crew=" + crew) {
		got[p.Spec.NodeName]++
	}
	if !maps.Equal(got, want) {
		e.t.Errorf("pods of %s are on %v, want %v", crew, got, want)
	}
}

// obey makes the scheduler serve these tables.
func (e *evictions) obey(tables string) {
	e.t.Helper()
	e.Apply(`
apiVersion: scheduling.celsius.dev/v1alpha1
kind: SchedulingPolicy
metadata: {name: "${policy}"}
spec:
  mode: Active
  pipeline: [enqueue, allocate]
  tiers:
  - name: first
    tables: [{name: gang}, {name: predicates}, ` + tables + `]
`)
}

// service is an extender that can stop and start again at its address. It refuses the node never, and scores the node rather best.
type service struct {
	t             *testing.T
	address       string
	tls           *tls.Config // nil: plain HTTP
	never, rather string
	silent        atomic.Bool // it accepts requests and does not answer
	server        *httptest.Server
}

// newService returns a running service.
func newService(t *testing.T, secure *tls.Config) *service {
	s := &service{t: t, address: "127.0.0.1:0", tls: secure}
	s.up()
	t.Cleanup(s.down)
	return s
}

// up starts the service at its previous address.
func (s *service) up() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().String()
	s.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}}
	if s.tls == nil {
		s.server.Start()
		return
	}
	s.server.TLS = s.tls.Clone()
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
}

// down stops the service, and closes all its connections.
func (s *service) down() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// url returns the URL of the service.
func (s *service) url() string {
	if s.tls == nil {
		return "http://" + s.address
	}
	return "https://" + s.address
}

// table returns the table of a policy that uses the service.
func (s *service) table(ignorable bool) string {
	return fmt.Sprintf("{name: extender, params: {urlPrefix: %q, httpTimeout: 500ms, predicateVerb: filter, prioritizeVerb: rate, "+
		"refreshAfter: 1s, staleAfter: 5s, ignorable: %t}}", s.url(), ignorable)
}

// ServeHTTP implements http.Handler.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type named struct{ Name string }
	var asked struct {
		Task, Node named
		Nodes      []named
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Task.Name == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.silent.Load() {
		<-r.Context().Done()
		return
	}
	answer := map[string]any{}
	switch {
	case r.URL.Path == "/rate":
		scores := map[string]float64{}
		for _, n := range asked.Nodes {
			if n.Name == s.rather {
				scores[n.Name] = 10
			}
		}
		answer["nodeScore"] = scores
	case asked.Node.Name == s.never:
		answer["status"], answer["code"] = "no licence for "+asked.Task.Name, 2
	}
	_ = json.NewEncoder(w).Encode(answer) // a client that has disconnected does not read it
}

// newAuthority creates an authority, the TLS configuration of a server that it signed, and the folder with which clients trust it.
func newAuthority(t *testing.T) (server *tls.Config, folder string) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of the test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	check(err)
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "extender"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, authority, &key.PublicKey, authorityKey)
	check(err)
	folder = t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	check(os.WriteFile(filepath.Join(folder, "ca.crt"), ca, 0o600))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, folder
}

// asksOf returns the numbers of requests to an extender in the scheduler's metrics, by form and outcome.
func (e *evictions) asksOf(s *service, metrics string) map[string]int {
	e.t.Helper()
	response, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	out := map[string]int{}
	for _, form := range []string{"predicate", "prioritize"} {
		for _, outcome := range []string{"answered", "wrong", "late", "unreached"} {
			_, after, found := strings.Cut(string(text), fmt.Sprintf("\ncelsius_extender_requests_total{extender=%q,form=%q,outcome=%q} ",
				s.address, form, outcome))
			if n := 0; found {
				if _, err := fmt.Sscan(after, &n); err != nil {
					e.t.Fatal(err)
				}
				out[form+" "+outcome] = n
			}
		}
	}
	return out
}

// TestE2EExtender runs a service that decides where pods run, with TLS and its own authority. Pods run only there. While it is down or does
// not answer, pods wait and name the service, and continue when it is back. The metrics count its requests by outcome.
func TestE2EExtender(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "")
	nodes := e.Nodes(3, "cpu=4,memory=8Gi")
	secure, folder := newAuthority(t)
	s := newService(t, secure)
	s.never, s.rather = nodes[0], nodes[2]
	e.obey(s.table(false))
	metrics := freeAddress(t)
	e.StartScheduler(func(o *live.Options) {
		o.Period, o.Namespace, o.MetricsAddress = 100*time.Millisecond, e.Namespace, metrics
		o.Extenders.TLS = map[string]string{s.address: folder}
	})

	e.runs(crew{name: "six", least: 6, pods: 6})
	e.areOn("six", map[string]int{nodes[1]: 2, nodes[2]: 4})
	e.come(crew{name: "large", least: 1, pods: 1, cpu: 4})
	e.says("large-0", "1 node(s) that an extender refuses: no licence for large-0", "Insufficient cpu")

	s.down()
	e.come(crew{name: "late", least: 1, pods: 1})
	e.says("late-0", "3 node(s) without a verdict: extender at "+s.url()+"/filter: could not be reached: ",
		"connection refused; it is asked again every 1s; with ignorable: true the table would let this pass")
	e.still()
	s.up()
	e.allRun("late", 1)
	e.areOn("late", map[string]int{nodes[1]: 1})

	s.silent.Store(true)
	e.come(crew{name: "next", least: 1, pods: 1})
	e.says("next-0", "extender at "+s.url()+"/filter: did not answer within 500ms")
	s.silent.Store(false)
	e.allRun("next", 1)
	e.areOn("next", map[string]int{nodes[1]: 1})

	got := e.asksOf(s, metrics)
	for _, one := range []string{"predicate answered", "prioritize answered", "predicate unreached", "predicate late"} {
		if got[one] == 0 {
			t.Errorf("of requests that ended so there is none: %s; counted are %v", one, got)
		}
	}
	if got["predicate wrong"] > 0 || got["prioritize wrong"] > 0 {
		t.Errorf("all answers were right; counted are %v", got)
	}
}

// TestE2EExtenderIgnored first uses a service with an untrusted certificate, and pods report this. It then uses a service with plain HTTP,
// which the policy ignores when it is down. Pods follow the service while it answers, and run anywhere while it does not.
func TestE2EExtenderIgnored(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "")
	nodes := e.Nodes(2, "cpu=4,memory=8Gi")
	secure, _ := newAuthority(t)
	doubted, s := newService(t, secure), newService(t, nil)
	s.never = nodes[0]
	e.obey(doubted.table(false))
	e.start()

	e.come(crew{name: "two", least: 2, pods: 2})
	e.says("two-0", "extender at "+doubted.url()+"/filter: could not be reached: ", "certificate", "--extender-tls")
	e.obey(s.table(true))
	e.allRun("two", 2)
	e.areOn("two", map[string]int{nodes[1]: 2})

	s.down()
	e.runs(crew{name: "large", least: 1, pods: 1, cpu: 4})
	e.areOn("large", map[string]int{nodes[0]: 1})
	s.up()
	e.runs(crew{name: "last", least: 2, pods: 2})
	e.areOn("last", map[string]int{nodes[1]: 2})
}

// topology creates or updates the Numatopology of a node with two NUMA nodes of four CPUs each.
func (e *evictions) topology(node, free string) {
	e.t.Helper()
	cpus := map[string]nodeinfov1alpha1.CPUInfo{}
	for cpu := range 8 {
		cpus[fmt.Sprint(cpu)] = nodeinfov1alpha1.CPUInfo{NUMANodeID: cpu / 4, SocketID: cpu / 4, CoreID: cpu / 2}
	}
	detail, err := json.Marshal(cpus)
	if err != nil {
		e.t.Fatal(err)
	}
	e.Apply(fmt.Sprintf(`
apiVersion: nodeinfo.volcano.sh/v1alpha1
kind: Numatopology
metadata: {name: %s}
spec:
  policies: {CPUManagerPolicy: static, TopologyManagerPolicy: single-numa-node}
  numares: {cpu: {allocatable: %q, capacity: 8}}
  cpuDetail: %s
`, node, free, detail))
}

// comesBack deletes a node, calls gone, and creates another node with the same name.
func (e *evictions) comesBack(name string, gone func()) {
	e.t.Helper()
	nodes := e.Kube.CoreV1().Nodes()
	node, err := nodes.Get(e.Context, name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	if err := nodes.Delete(e.Context, name, metav1.DeleteOptions{}); err != nil {
		e.t.Fatal(err)
	}
	gone()
	node.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: node.Annotations}
	if _, err := nodes.Create(e.Context, node, metav1.CreateOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// TestE2ENumatopologies checks that Numatopologies decide where pods run that need CPUs of one NUMA node. They run where these are free,
// and elsewhere if they are in use. They run nowhere if no node reports its CPUs. A node that is deleted and created again has its CPUs.
func TestE2ENumatopologies(t *testing.T) {
	t.Parallel()
	e := newEvictions(t, "enqueue, allocate", "{name: gang}", "{name: predicates}", "{name: numaaware}")
	nodes := e.Nodes(2, "cpu=8,memory=16Gi")
	e.forgetLater(func(ctx context.Context) error {
		for _, node := range nodes {
			o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: node}}
			o.SetGroupVersionKind(nodeinfov1alpha1.GroupVersion.WithKind("Numatopology"))
			if err := client.IgnoreNotFound(e.Client.Delete(ctx, o)); err != nil {
				return err
			}
		}
		return nil
	})
	e.topology(nodes[0], "0-1,4-5")
	e.topology(nodes[1], "0-3")
	e.start()
	const (
		taken  = "node(s) with too few free CPUs, or with these on too many NUMA nodes for their topology manager"
		untold = "node(s) whose kubelet gives no pod CPUs of its own, or that have no Numatopology"
	)
	three := func(name string) crew {
		return crew{name: name, least: 1, pods: 1, cpu: 3, change: func(p *corev1.Pod) {
			p.Annotations[schedulingv1beta1.NumaPolicyKey] = "single-numa-node"
			r := &p.Spec.Containers[0].Resources
			r.Requests[corev1.ResourceMemory] = resource.MustParse("1Gi")
			r.Limits = r.Requests
		}}
	}
	on := func(name, node string) {
		t.Helper()
		e.allRun(name, 1)
		p := e.Pods("crew=" + name)[0]
		if got := p.Annotations[schedulingv1beta1.TopologyDecisionAnnotation]; p.Spec.NodeName != node || got != `{"numa":{"0":{"cpu":"3"}}}` {
			t.Errorf("%s is on %s with %s, want %s and three CPUs of its first NUMA node", name, p.Spec.NodeName, got, node)
		}
	}
	e.come(three("first"))
	on("first", nodes[1])
	e.come(three("second"))
	e.says("second-0", "2 "+taken)
	e.topology(nodes[0], "0-3") // as if the kubelet released CPUs
	on("second", nodes[0])

	e.Kubectl("delete", "pod", "first-0", "--now")
	e.topology(nodes[1], "0,4") // as if the kubelet assigned them to another pod
	e.come(three("third"))
	e.says("third-0", "2 "+taken)
	e.Kubectl("delete", "numatopologies", nodes[1])
	e.says("third-0", "1 "+taken, "1 "+untold)

	e.Kubectl("delete", "pod", "second-0", "third-0", "--now")
	e.topology(nodes[0], "0-3")
	e.comesBack(nodes[0], func() {
		e.Wait("the node is gone", func() error {
			_, err := e.Kube.CoreV1().Nodes().Get(e.Context, nodes[0], metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is there: %w", err)
		})
		e.come(three("fourth"))
		e.says("fourth-0", "0/1 nodes are available: 1 "+untold)
	})
	on("fourth", nodes[0])
}
