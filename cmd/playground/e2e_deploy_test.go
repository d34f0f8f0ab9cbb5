package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/celsius-scheduler/celsius/cmd/playground/bench"
)

// partsOfCelsius are the verbs of the binary that run in a cluster. Their folders in deploy have the same names.
var partsOfCelsius = []string{"scheduler", "controllers", "webhook"}

// rendered returns the output of kubectl kustomize for deploy: each object as YAML, by kind.
func rendered(t *testing.T) map[string][][]byte { return renderedOf(t, "deploy") }

func renderedOf(t *testing.T, folder string) map[string][][]byte {
	t.Helper()
	r := runCommand(t, playgroundCommand(t.Context(), "kubectl", "--kubeconfig", os.DevNull, "kustomize", "../../"+folder))
	if r.Code != 0 {
		t.Fatalf("kubectl kustomize %s: exit code %d\n%s", folder, r.Code, r.Err)
	}
	objects := map[string][][]byte{}
	for text := range bytes.SplitSeq([]byte(r.Out), []byte("\n---\n")) {
		var head metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		objects[head.Kind] = append(objects[head.Kind], text)
	}
	return objects
}

// decoded decodes every rendered object of a kind strictly.
func decoded[T any](t *testing.T, objects map[string][][]byte, kind string) []T {
	t.Helper()
	var out []T
	for _, text := range objects[kind] {
		var object T
		if err := yaml.UnmarshalStrict(text, &object); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		out = append(out, object)
	}
	if len(out) == 0 {
		t.Fatalf("deploy has no %s", kind)
	}
	return out
}

// TestDeployRoles checks that the roles contain no wildcard, and no secret or configuration except the part's own.
func TestDeployRoles(t *testing.T) {
	objects := rendered(t)
	roles := map[string][]rbacv1.PolicyRule{}
	for _, r := range decoded[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		roles["ClusterRole "+r.Name] = r.Rules
	}
	for _, r := range decoded[rbacv1.Role](t, objects, "Role") {
		roles["Role "+r.Name] = r.Rules
	}
	if len(roles) != 2*len(partsOfCelsius)+4 {
		t.Errorf("%d roles, want one in the cluster and one in the namespace for each of %v, celsius-metrics-reader, and celsius-explain-view, "+
			"-edit and -cluster", len(roles), partsOfCelsius)
	}
	for name, rules := range roles {
		for _, rule := range rules {
			if why := tooMuch(name, rule); why != "" {
				t.Errorf("%s %s: %v", name, why, rule)
			}
		}
	}
}

// tooMuch returns what a role must not permit, or "".
func tooMuch(role string, rule rbacv1.PolicyRule) string {
	of := func(list []string, any ...string) bool {
		return slices.ContainsFunc(any, func(word string) bool { return slices.Contains(list, word) })
	}
	unnamed := len(rule.ResourceNames) == 0
	switch {
	case slices.ContainsFunc(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs), func(word string) bool {
		return strings.Contains(word, "*")
	}):
		return "has a wildcard"
	case of(rule.Resources, "secrets") && strings.HasPrefix(role, "ClusterRole") &&
		(role != "ClusterRole celsius-controllers" || !slices.Equal(rule.Verbs, []string{"create", "delete"})),
		of(rule.Resources, "secrets") && strings.HasPrefix(role, "Role") && unnamed && !slices.Equal(rule.Verbs, []string{"create"}):
		return "may read secrets that are not its own"
	case of(rule.APIGroups, "admissionregistration.k8s.io") && (unnamed || of(rule.Verbs, "create", "delete")):
		return "registers more than what ships"
	case of(rule.Resources, "pods") && of(rule.Verbs, "create") && !strings.HasSuffix(role, "celsius-controllers"):
		return "makes pods"
	}
	return ""
}

// TestDeployIsHardened checks that the pods of the parts fulfill the requirements of a restricted namespace, and have two replicas.
func TestDeployIsHardened(t *testing.T) {
	objects := rendered(t)
	deployments := decoded[appsv1.Deployment](t, objects, "Deployment")
	if len(deployments) != len(partsOfCelsius) {
		t.Errorf("%d Deployments, want %v", len(deployments), partsOfCelsius)
	}
	for _, d := range deployments {
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		asked := map[string]bool{
			"two replicas":             *d.Spec.Replicas == 2,
			"an account of its own":    pod.ServiceAccountName == d.Name,
			"not as root":              *pod.SecurityContext.RunAsNonRoot && *pod.SecurityContext.RunAsUser == 65532,
			"seccomp":                  pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault,
			"no escalation":            !*c.SecurityContext.AllowPrivilegeEscalation,
			"read-only":                *c.SecurityContext.ReadOnlyRootFilesystem,
			"no capabilities":          slices.Equal(c.SecurityContext.Capabilities.Drop, []corev1.Capability{"ALL"}),
			"requests":                 !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Requests.Memory().IsZero(),
			"a limit of memory":        !c.Resources.Limits.Memory().IsZero(),
			"a probe of liveness":      c.LivenessProbe != nil,
			"a probe of readiness":     c.ReadinessProbe != nil,
			"a class of priority":      pod.PriorityClassName != "",
			"an image without a flaw":  regexp.MustCompile(`^celsius:[\w.-]+$`).MatchString(c.Image),
			"the replicas spread":      len(pod.TopologySpreadConstraints) == 1,
			"labels that are selected": d.Spec.Selector.MatchLabels["app.kubernetes.io/name"] == d.Name,
		}
		for what, ok := range asked {
			if !ok {
				t.Errorf("%s lacks: %s", d.Name, what)
			}
		}
	}
	reached := map[string]bool{}
	for _, n := range decoded[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy") {
		reached[n.Spec.PodSelector.MatchLabels["app.kubernetes.io/name"]] = slices.Equal(n.Spec.PolicyTypes,
			[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) && len(n.Spec.Ingress) > 0
	}
	for _, d := range deployments {
		if !reached[d.Name] {
			t.Errorf("%s has no network policy", d.Name)
		}
	}
	manifests, err := filepath.Glob("../../crds/manifests/*.yaml")
	if kinds := renderedOf(t, "crds")["CustomResourceDefinition"]; err != nil || len(manifests) != len(kinds) {
		t.Errorf("crds has %d CRDs of %d (%v): list them in crds/kustomization.yaml", len(kinds), len(manifests), err)
	}
	if n := len(objects["CustomResourceDefinition"]); n > 0 {
		t.Errorf("deploy has %d CRDs: kubectl delete -k deploy would delete all objects of these kinds", n)
	}
}

// tooWide is a pod that fits on no node.
const tooWide = `
apiVersion: v1
kind: Pod
metadata: {name: too-wide}
spec:
  schedulerName: celsius
  containers: [{name: main, image: main, resources: {requests: {cpu: 1000}}}]
`

// TestE2EDeploy applies deploy to a control plane without the product. It runs the parts as processes with the permissions of their service
// accounts and the flags of their Deployments. Then it runs a job from its creation to its deletion.
func TestE2EDeploy(t *testing.T) {
	var scraped []string
	requests, objects := filepath.Join(t.TempDir(), "audit"), rendered(t)
	p := startPlayground(t, "--only", "control-plane", "--nodes", "3", "--audit-log", requests)
	p.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", "../../crds")
	p.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", "../../deploy")

	for _, d := range decoded[appsv1.Deployment](t, objects, "Deployment") {
		metrics := p.startDeployed(t, d)
		scraped = append(scraped, metrics)
	}
	p.kubectl(t, "create", "serviceaccount", "prometheus")
	p.kubectl(t, "create", "clusterrolebinding", "prometheus", "--clusterrole=celsius-metrics-reader", "--serviceaccount=default:prometheus")
	for _, address := range scraped {
		p.checkScraped(t, address)
	}

	// A queue, a gang that ends and is collected, a bare pod, a policy, a command: together they cause every kind of request.
	p.kubectl(t, "apply", "-f", "../../samples/queues/queues.yaml", "-f", "../../samples/policies/house-rules.yaml")
	p.kubectl(t, "apply", "-f", "../../samples/lifecycles/ttl.yaml", "-f", "../../samples/workloads/deployment.yaml")
	p.kubectl(t, "apply", "-f", "../../samples/workloads/kubernetes-job.yaml", "-f", "../../samples/workloads/pod-group.yaml")
	p.kubectl(t, "apply", "-f", "../../samples/lifecycles/retry.yaml", "-f", "../../samples/lifecycles/launcher.yaml")
	p.kubectl(t, "apply", "-f", "../../samples/training/mpi.yaml", "-f", "../../samples/workloads/job-flow.yaml")
	p.kubectl(t, "wait", "--for=jsonpath={.status.state.phase}=Failed", "vcjob/retry")
	p.kubectl(t, "wait", "--for=jsonpath={.status.state.phase}=Completed", "vcjob/mpi")
	p.kubectl(t, "wait", "--for=delete", "secret/mpi-ssh", "configmap/mpi-svc", "service/mpi", "networkpolicy/mpi")
	p.kubectl(t, "wait", "--for=jsonpath={.status.state.phase}=Completed", "vcjob/launcher")
	p.kubectl(t, "wait", "--for=delete", "vcjob/ttl")
	p.kubectl(t, "wait", "--for=jsonpath={.status.state.phase}=Succeed", "jobflow/nightly")
	p.kubectl(t, "delete", "jobflow/nightly")
	p.kubectl(t, "rollout", "status", "deployment/inference")
	p.kubectl(t, "apply", "-f", file(t, strings.Replace(sample(t, "quickstart/policy.yaml"), "name: quickstart", "name: default", 1)))
	p.kubectl(t, "wait", "--for=condition=Active", "spol/default")
	p.kubectl(t, "create", "-f", file(t, tooWide))
	p.kubectl(t, "wait", "--for=condition=PodScheduled=False", "pod/too-wide")
	group := "podgroup/podgroup-" + p.kubectl(t, "get", "pod/too-wide", "-o", "jsonpath={.metadata.uid}")
	p.kubectl(t, "wait", "--for=create", group) // by the scheduler, some seconds after it has seen the pod
	p.checkExplained(t)
	p.kubectl(t, "create", "-f", p.commandOf(t, "close-queue", "queue/batch"))
	p.kubectl(t, "wait", "--for=jsonpath={.status.state}=Closing", "queue/batch")
	p.kubectl(t, "delete", "deployment/inference", "vcjob/retry", "vcjob/launcher")
	p.kubectl(t, "delete", "-f", "../../samples/workloads/kubernetes-job.yaml", "-f", "../../samples/workloads/pod-group.yaml")
	p.kubectl(t, "wait", "--for=jsonpath={.status.state}=Closed", "queue/batch")

	checkRights(t, objects, requests)
}

// TestE2ERemove removes what docs/getting-started.md lists, and checks that every Job, Queue, PodGroup and pod is unchanged.
func TestE2ERemove(t *testing.T) {
	p := startPlayground(t, "--only", "control-plane", "--nodes", "1")
	page, err := os.ReadFile("../../docs/getting-started.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "Remove it with `kubectl delete -k overlay`") {
		t.Fatal("the page does not tell how to remove Celsius, as this test does")
	}
	p.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", "../../crds")
	p.kubectl(t, "apply", "-f", "../../samples/queues/queues.yaml", "-f", "../../samples/lifecycles/retry.yaml")
	p.kubectl(t, "apply", "-f", "../../samples/workloads/pod-group.yaml")
	p.kubectl(t, "create", "-f", file(t, tooWide))
	p.kubectl(t, "apply", "--server-side", "--force-conflicts", "-k", "../../deploy")
	all := func() string {
		out := p.kubectl(t, "get", "jobs.batch.volcano.sh,queues.scheduling.volcano.sh,podgroups,pods", "-A", "-o",
			`jsonpath={range .items[*]}{.metadata.namespace} {.kind}/{.metadata.name} `+
				`{.metadata.uid} {.metadata.resourceVersion} {.metadata.deletionTimestamp}{"\n"}{end}`)
		lines := strings.SplitAfter(out, "\n") // without the pods of Celsius itself
		return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, systemNamespace+" ") }), "")
	}
	before := all()
	for _, kind := range []string{"Job/", "Queue/", "PodGroup/", "Pod/"} {
		if !strings.Contains(before, kind) {
			t.Fatalf("there is no %s among\n%s", kind, before)
		}
	}
	p.kubectl(t, "delete", "-k", "../../deploy")
	if after := all(); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// standalone is a playground in a separate process.
type standalone struct {
	kubeconfig string
	output     *bytes.Buffer
	explains   string // the address at which the scheduler of startDeployed answers
}

// startPlayground starts a playground with these arguments, as a user does, and waits until it is ready. It ends with the test.
func startPlayground(t *testing.T, args ...string) *standalone {
	t.Helper()
	p := &standalone{kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), output: &bytes.Buffer{}}
	command := playgroundCommand(t.Context(), append([]string{"--kubeconfig", p.kubeconfig}, args...)...)
	command.Env = append(command.Env, "XDG_CACHE_HOME="+t.TempDir()) // it does not hide another running playground from playground kubectl
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 30 * time.Second
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(out)
		for told := false; lines.Scan(); {
			fmt.Fprintln(p.output, lines.Text())
			if !told && strings.HasPrefix(lines.Text(), "Ctrl-C ends it") {
				told = true
				close(ready)
			}
		}
		_ = command.Wait() // the end of the test interrupts it, which is not a failure
	}()
	t.Cleanup(func() {
		<-ended
		if t.Failed() {
			t.Logf("the playground said:\n%s", p.output)
		}
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("the playground ended:\n%s", p.output)
	case <-time.After(waitAtMost):
		t.Fatalf("the playground is not ready after %s", waitAtMost)
	}
	return p
}

// kubectl runs kubectl in it, and returns the output.
func (p *standalone) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	if args[0] == "wait" || args[0] == "rollout" {
		args = append(args, "--timeout="+waitAtMost.String())
	}
	r := runCommand(t, playgroundCommand(t.Context(), append([]string{"kubectl", "--kubeconfig", p.kubeconfig}, args...)...))
	if r.Code != 0 {
		t.Fatalf("kubectl %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Out, r.Err)
	}
	return r.Out
}

// commandOf writes a sample of a Command with the UID of its target, and returns the path of the file.
func (p *standalone) commandOf(t *testing.T, name, target string) string {
	t.Helper()
	text := strings.Replace(sample(t, "commands/"+name+".yaml"), `uid: ""`, "uid: "+p.kubectl(t, "get", target, "-o",
		"jsonpath={.metadata.uid}"), 1)
	return file(t, strings.ReplaceAll(text, "${queue.batch}", "batch"))
}

// file writes an object to a file, and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkScraped requests the metrics of a part without an account, with an account that may not read them, and with one that may.
func (p *standalone) checkScraped(t *testing.T, address string) {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // the part signed its own certificate
	defer web.CloseIdleConnections()
	for account, want := range map[string]int{"": http.StatusUnauthorized, "default": http.StatusForbidden, "prometheus": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		if account != "" {
			request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(p.kubectl(t, "create", "token", account)))
		}
		response, err := web.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != want || want != http.StatusOK && strings.Contains(string(body), "celsius_") {
			t.Errorf("metrics for %q: %d %.100s (%v), want %d", account, response.StatusCode, body, err, want)
		}
	}
}

// checkExplained asks the scheduler about the last cycle, with accounts that have the roles for it and different permissions. The Service
// leads to the address of the process, because no service network exists here.
func (p *standalone) checkExplained(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(p.explains)
	if err != nil {
		t.Fatal(err)
	}
	p.kubectl(t, "wait", "--for=jsonpath={.endpoints[0].addresses[0]}=10.244.0.7", "endpointslice/celsius-explain", "-n", systemNamespace)
	p.kubectl(t, "patch", "service/celsius-explain", "-n", systemNamespace, "--type=merge", "-p",
		`{"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, "clusterIPs": null}}`)
	p.kubectl(t, "wait", "--for=jsonpath={.spec.caBundle}", "apiservice/v1alpha1.explain.celsius.dev")
	p.kubectl(t, "patch", "apiservice/v1alpha1.explain.celsius.dev", "--type=merge", "-p", `{"spec": {"service": {"port": `+port+`}}}`)
	p.kubectl(t, "wait", "--for=condition=Available", "apiservice/v1alpha1.explain.celsius.dev")
	p.kubectl(t, "wait", "--for=jsonpath={.rules[?(@.apiGroups[0]==\"explain.celsius.dev\")].verbs[0]}=get", "clusterrole/view")
	p.kubectl(t, "wait", "--for=jsonpath={.rules[?(@.resources[0]==\"whatifs\")].verbs[0]}=create", "clusterrole/edit")
	const view, edit, cluster = "celsius-explain-view", "celsius-explain-edit", "celsius-explain-cluster"
	roles := map[string]string{view: "view", edit: "edit", cluster: cluster}
	for account, role := range roles { // it has the name of the role, through which its permissions are found
		p.kubectl(t, "create", "serviceaccount", account, "-n", systemNamespace)
		p.kubectl(t, "create", "clusterrolebinding", account, "--clusterrole="+role, "--serviceaccount="+systemNamespace+":"+account)
	}
	node := p.kubectl(t, "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
	coming := file(t, strings.NewReplacer("too-wide", "coming", "cpu: 1000", "cpu: 1").Replace(tooWide))
	for _, test := range []struct {
		account string
		ask     []string
		want    string
	}{
		{view, []string{"explain", "pod", "too-wide"}, "can never fit: the largest node has 32"},
		{view, []string{"explain", "job", "too-wide"}, "queue  default"},
		{cluster, []string{"explain", "queue", "default"}, "1 job of other namespaces"},
		{cluster, []string{"explain", "node", node}, "of other namespaces"},
		{edit, []string{"what-if", "-f", coming}, "default/coming would wait"},
		{edit, []string{"what-if", "--delete", "job/too-wide"}, "nothing else would be decided otherwise"},
		{cluster, []string{"what-if", "--add-nodes", "1x" + node}, "nothing else would be decided otherwise"},
	} {
		command := exec.CommandContext(t.Context(), celsiusBinary(t), append(test.ask, "-n", "default")...)
		command.Env = append(os.Environ(), "KUBECONFIG="+p.accountKubeconfig(t, systemNamespace, test.account))
		r := runCommand(t, command)
		hidden := test.account == cluster // it may read no job
		if !strings.Contains(r.Out+r.Err, test.want) || hidden && strings.Contains(r.Out, "too-wide") {
			t.Errorf("%s asks %v and is told\n%s%s\nwant %q", test.account, test.ask, r.Out, r.Err, test.want)
		}
	}
	asCluster := "--kubeconfig=" + p.accountKubeconfig(t, systemNamespace, cluster)
	counted := p.kubectl(t, "get", asCluster, "--raw", "/apis/explain.celsius.dev/v1alpha1/metrics/scheduler")
	if !strings.Contains(counted, "\ncelsius_cycles_total ") {
		t.Errorf("what is counted is not told: %.500s", counted)
	}
	if out := p.kubectl(t, "get", "pods", "-n", "default", "-o", "name"); strings.Contains(out, "coming") {
		t.Errorf("what was asked about is there now:\n%s", out)
	}
}

// startDeployed runs the container of a Deployment as a process, with a kubeconfig of its service account, and waits until it is ready. It
// returns the address of its metrics. Addresses are replaced by free ones of this machine, and the API server reaches the webhook by URL,
// because no service network exists here.
func (p *standalone) startDeployed(t *testing.T, d appsv1.Deployment) (metrics string) {
	t.Helper()
	health := freeAddress(t)
	metrics = freeAddress(t)
	args := []string{"--kubeconfig", p.accountKubeconfig(t, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)}
	for i, arg := range d.Spec.Template.Spec.Containers[0].Args {
		arg = strings.NewReplacer("$(NAMESPACE)", d.Namespace, "$(POD_IP)", "10.244.0.7").Replace(arg)
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case i == 0:
			args = slices.Insert(args, 0, arg)
			continue
		case name == "--health-address":
			arg = name + "=" + health
		case name == "--metrics-address":
			arg = name + "=" + metrics
		case name == "--explain-address":
			p.explains = freeAddress(t)
			arg = name + "=" + p.explains
		case name == "--address":
			arg = name + "=127.0.0.1:0"
			args = append(args, "--url-host=127.0.0.1")
		}
		args = append(args, arg)
	}
	log := &bytes.Buffer{}
	command := exec.CommandContext(t.Context(), celsiusBinary(t), args...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		if err := <-ended; t.Failed() {
			t.Logf("%s %s ended: %v\n%s", d.Name, strings.Join(args, " "), err, log.String())
		}
	})
	awaitReady(t, "http://"+health+"/readyz", ended)
	return metrics
}

// awaitReady waits until the URL returns status 200.
func awaitReady(t *testing.T, url string, ended chan error) {
	t.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.After(waitAtMost)
	defer tick.Stop()
	for {
		var said string
		response, err := http.Get(url)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
			said = string(body)
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s: the process ended: %v", url, err)
		case <-late:
			t.Fatalf("%s: not ready: %v %s", url, err, said)
		case <-tick.C:
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := bench.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// accountKubeconfig writes a kubeconfig with the permissions of a service account only.
func (p *standalone) accountKubeconfig(t *testing.T, namespace, account string) string {
	t.Helper()
	token := strings.TrimSpace(p.kubectl(t, "create", "token", account, "-n", namespace, "--duration=1h"))
	server := p.kubectl(t, "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.server}")
	ca := p.kubectl(t, "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}")
	path := filepath.Join(t.TempDir(), account)
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: it
clusters: [{name: it, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: it, user: {token: %q}}]
contexts: [{name: it, context: {cluster: it, user: it}}]
`, server, ca, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
