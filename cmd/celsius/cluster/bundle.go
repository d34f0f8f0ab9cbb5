package cluster

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The limits of a bundle.
const (
	mostOfFile   = 32 << 20 // bytes of one file, before compression
	linesOfLog   = 2000     // of each container
	bytesOfLog   = 1 << 20
	podsInBundle = 20
	mostEvents   = 500
)

// partLabel is the label with the name of the part that an object belongs to.
const partLabel = "app.kubernetes.io/name"

// isPart reports whether the value of the label is the name of a part of Celsius.
func isPart(name string) bool {
	return name == "celsius-scheduler" || name == "celsius-controllers" || name == "celsius-webhook"
}

func (t *tool) bundleCommand() *cobra.Command {
	var to string
	var anonymous, overwrite bool
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect what helps to understand a problem, without secrets",
		Long: `Collect what a maintainer needs to look at a problem, with your own rights, as a
tar.gz: versions and flags of the parts, their pods, logs, events, metrics,
leases and webhook configurations, versions of the CRDs, SchedulingPolicies with
what is said of them, counts, and what celsius snapshot writes. summary.txt says
what was collected, and what could not be, and why.

No Secret or ConfigMap is read, no environment, and no command of a user's pod.
Passwords in addresses of flags are left out. -n is where Celsius is installed,
and celsius-system where it is not given. Of each container the last 2,000 lines
are kept, of each file 32 MiB.

With --anonymize the snapshot has numbers in place of names, as celsius snapshot
--anonymize has; logs, events and metrics, which name namespaces, Jobs and
Queues, are left out, and of what is told of the parts nodes, hosts and
registries are.

Look through it before you send it to anybody.`,
		Example: `  celsius support-bundle
  celsius support-bundle -n batch-system --to problem.tar.gz
  celsius support-bundle --anonymize`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, namespace, err := t.reach(!c.Flags().Changed("namespace"))
			if err != nil {
				return err
			}
			now := t.Now().UTC()
			title := "celsius-support-" + now.Format("20060102-150405")
			to = cmp.Or(to, title+".tar.gz")
			if _, err := os.Stat(to); err == nil && !overwrite {
				return fmt.Errorf("--to: %s is there already; give another name, or --overwrite", to)
			}
			b := &bundle{
				reach: r, ctx: c.Context(), namespace: cmp.Or(namespace, "celsius-system"), anonymous: anonymous, now: now,
				client: c.Root().Version,
			}
			if err := b.collect(); err != nil {
				return err
			}
			if err := b.save(to, title, overwrite); err != nil {
				return err
			}
			say(c.OutOrStdout(), "%s", b.summary(to))
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "write to this file; celsius-support-TIME.tar.gz where it is not given")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace the file of --to where it is there")
	c.Flags().BoolVar(&anonymous, "anonymize", false, "write numbers in place of names, and leave out what tells them in words")
	return c
}

// bundle is a bundle that is being created.
type bundle struct {
	reach     *Reach
	ctx       context.Context
	namespace string
	anonymous bool
	now       time.Time
	client    string // version of the client

	files []bundled
	notes []string // what is missing in the bundle, and why
}

// bundled is a file in a bundle.
type bundled struct {
	name string
	data []byte
}

// add adds a file. It cuts the file at the size limit.
func (b *bundle) add(name string, data []byte) {
	if len(data) > mostOfFile {
		most := data[:mostOfFile]
		end := max(bytes.LastIndex(most, []byte("\n---\n")), 0) // cut between objects
		if end == 0 {
			end = bytes.LastIndexByte(most, '\n')
		}
		b.note(name, fmt.Errorf("%d of its %d bytes are kept", end+1, len(data)))
		data = most[:end+1]
	}
	b.files = append(b.files, bundled{name, data})
}

// addObjects adds objects as YAML, if there are any. where describes for people where they were searched.
func (b *bundle) addObjects(name, where string, objects []*unstructured.Unstructured) {
	if len(objects) == 0 {
		b.note(name, errors.New("there is none"+where))
		return
	}
	var out bytes.Buffer
	if err := writeSnapshot(&out, objects); err != nil {
		b.note(name, err)
		return
	}
	b.add(name, out.Bytes())
}

// note records what is missing in the bundle. In an anonymous bundle it keeps only the reason, because messages of the API server name the
// user.
func (b *bundle) note(what string, why error) {
	if reason := apierrors.ReasonForError(why); b.anonymous && reason != "" {
		why = errors.New(string(reason))
	}
	b.notes = append(b.notes, fmt.Sprintf("%s: %v", what, why))
}

// collect reads everything. It fails only if the API server does not even return its version. It records everything else that cannot be
// read as missing.
func (b *bundle) collect() error {
	version, err := b.reach.Raw(b.ctx, "/version", "application/json", nil)
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("ask the API server for its version: %w", err)
	}
	b.add("versions.txt", fmt.Appendf(nil, "celsius that collected this: %s\nAPI server: %s\n", cmp.Or(b.client, "unknown"), version))
	b.parts()
	b.registered()
	b.state()
	return nil
}

// objects reads and adds the selected objects of a kind. It uses the namespace if the kind has one. trim removes useless fields.
func (b *bundle) objects(file, namespace string, gvk schema.GroupVersionKind, of func(*unstructured.Unstructured) bool,
	trim func(map[string]any),
) []*unstructured.Unstructured {
	all, err := listAll(b.ctx, b.reach, gvk, client.InNamespace(namespace))
	if err != nil {
		b.note(file, err)
		return nil
	}
	all = slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool { return !of(o) })
	for _, o := range all {
		keepOf(o.Object, "metadata", "name namespace uid labels creationTimestamp deletionTimestamp generation resourceVersion ownerReferences")
		trim(o.Object)
		if b.anonymous {
			unnamed(o.Object)
		}
	}
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace + "; -n says where Celsius is installed"
	}
	b.addObjects(file, where, all)
	return all
}

// parts adds the deployments and pods of Celsius, with their logs and metrics.
func (b *bundle) parts() {
	of := func(o *unstructured.Unstructured) bool { return isPart(o.GetLabels()[partLabel]) }
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	b.objects("deployments.yaml", b.namespace, deployments, of, func(o map[string]any) {
		keepOf(o, "spec", "replicas strategy template")
		if spec, ok := o["spec"].(map[string]any); ok {
			trimPart(spec["template"])
		}
	})
	podKind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	pods := b.objects("pods.yaml", b.namespace, podKind, of, func(o map[string]any) { trimPart(o) })
	b.objects("leases.yaml", b.namespace, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		func(o *unstructured.Unstructured) bool { return strings.HasPrefix(o.GetName(), "celsius") }, func(map[string]any) {})
	if b.anonymous {
		b.note("logs, events and metrics", errors.New("left out by --anonymize, as they name namespaces, Jobs and Queues"))
		return
	}
	b.events()
	if len(pods) > podsInBundle {
		b.note("logs and metrics", fmt.Errorf("those of %d of %d pods are kept", podsInBundle, len(pods)))
		pods = pods[:podsInBundle]
	}
	for _, p := range pods {
		b.logs(p)
		b.metrics(p.GetName())
	}
}

// userinfo matches the user and password in a URL.
var userinfo = regexp.MustCompile(`://[^/@\s]*@`)

// host matches the host in a URL.
var host = regexp.MustCompile(`://[^/\s]*`)

// unnamed removes from an object of Celsius the names of machines, registries and hosts, and texts for people.
func unnamed(o any) any {
	switch o := o.(type) {
	case map[string]any:
		for key, value := range o {
			text, _ := value.(string)
			switch key {
			case "nodeName", "message", "nodeSelector":
				delete(o, key)
			case "holderIdentity": // the name of a pod or of a machine
				if !strings.HasPrefix(text, "celsius-") {
					delete(o, key)
				}
			case "image", "imageID":
				o[key] = text[strings.LastIndex(text, "/")+1:]
			default:
				o[key] = unnamed(value)
			}
		}
	case []any:
		for i := range o {
			o[i] = unnamed(o[i])
		}
	case string:
		return host.ReplaceAllString(o, "://...")
	}
	return o
}

// trimPart keeps of a pod of Celsius, or of its template, what runs and its flags, but no environment variables.
func trimPart(pod any) {
	o, ok := pod.(map[string]any)
	if !ok {
		return
	}
	keep(o, "apiVersion kind metadata spec status")
	keepOf(o, "metadata", "name namespace uid labels creationTimestamp deletionTimestamp")
	keepOf(o, "status", "phase conditions containerStatuses startTime reason message")
	keepOf(o, "spec", "containers nodeName serviceAccountName priorityClassName nodeSelector tolerations topologySpreadConstraints")
	spec, _ := o["spec"].(map[string]any)
	for _, c := range listOf(spec, "containers") {
		keep(c, "name image args resources ports")
		if args, ok := c["args"].([]any); ok {
			for i := range args {
				args[i] = userinfo.ReplaceAllString(fmt.Sprint(args[i]), "://...@")
			}
		}
	}
}

// events adds the newest events of the namespace.
func (b *bundle) events() {
	list := &corev1.EventList{}
	if err := b.reach.List(b.ctx, list, client.InNamespace(b.namespace), client.Limit(10*mostEvents)); err != nil {
		b.note("events.txt", err)
		return
	}
	at := func(e *corev1.Event) time.Time {
		return slices.MaxFunc([]time.Time{e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time}, time.Time.Compare)
	}
	slices.SortFunc(list.Items, func(x, y corev1.Event) int { return at(&y).Compare(at(&x)) })
	var out bytes.Buffer
	for i := range list.Items[:min(len(list.Items), mostEvents)] {
		e := &list.Items[i]
		fmt.Fprintf(&out, "%s %s %s %s/%s: %s\n", at(e).UTC().Format(time.RFC3339), e.Type, e.Reason, e.InvolvedObject.Kind,
			e.InvolvedObject.Name, e.Message)
	}
	b.add("events.txt", out.Bytes())
}

// logs adds the last lines of each container of a pod. After a restart it also adds those of the previous container.
func (b *bundle) logs(pod *unstructured.Unstructured) {
	status, _ := pod.Object["status"].(map[string]any)
	for _, c := range listOf(status, "containerStatuses") {
		name := fmt.Sprint(c["name"])
		for _, previous := range []bool{false, true} {
			file := "logs/" + pod.GetName() + "." + name + ".log"
			if previous {
				if restarts, _, _ := unstructured.NestedInt64(c, "restartCount"); restarts == 0 {
					continue
				}
				file = strings.TrimSuffix(file, ".log") + ".previous.log"
			}
			path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/log?container=%s&previous=%t&tailLines=%d&limitBytes=%d&timestamps=true",
				b.namespace, pod.GetName(), url.QueryEscape(name), previous, linesOfLog, bytesOfLog)
			text, err := b.reach.Raw(b.ctx, path, "*/*", nil)
			if err != nil {
				b.note(file, err)
				continue
			}
			b.add(file, text)
		}
	}
}

// metrics adds the metrics of a pod, which it reads through the API server.
func (b *bundle) metrics(pod string) {
	file, found := "metrics/"+pod+".prom", []error(nil)
	for _, scheme := range []string{"https:", ""} {
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s%s:8080/proxy/metrics", b.namespace, scheme, pod)
		text, err := b.reach.Raw(b.ctx, path, "text/plain", nil)
		if err == nil {
			b.add(file, text)
			return
		}
		found = append(found, err)
	}
	b.note(file, fmt.Errorf("%w. A part asks who reads, and the API server does not tell it who you are: kubectl -n %s port-forward pod/%s "+
		"8080, then curl -k -H \"Authorization: Bearer TOKEN\" https://localhost:8080/metrics, with a token of who may get /metrics",
		found[0], b.namespace, pod))
}

// ours reports whether a name belongs to an API group of Celsius or Volcano.
func ours(name string) bool {
	return strings.HasSuffix(name, "celsius.dev") || strings.HasSuffix(name, "volcano.sh")
}

// registered adds the webhook configurations, CRDs and APIServices of Celsius and Volcano.
func (b *bundle) registered() {
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		gvk := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
		b.objects(strings.ToLower(kind)+"s.yaml", "", gvk, func(o *unstructured.Unstructured) bool {
			return slices.ContainsFunc(listOf(o.Object, "webhooks"), func(w map[string]any) bool { return ours(fmt.Sprint(w["name"])) })
		}, func(o map[string]any) {
			for _, w := range listOf(o, "webhooks") {
				if c, ok := w["clientConfig"].(map[string]any); ok {
					c["caBundle"] = fmt.Sprintf("%d characters", len(fmt.Sprint(c["caBundle"])))
				}
			}
		})
	}
	b.objects("crds.yaml", "", schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		func(o *unstructured.Unstructured) bool { return ours(o.GetName()) }, func(o map[string]any) {
			keepOf(o, "spec", "versions conversion")
			spec, _ := o["spec"].(map[string]any)
			for _, v := range listOf(spec, "versions") {
				keep(v, "name served storage deprecated")
			}
		})
	b.objects("apiservices.yaml", "", schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		func(o *unstructured.Unstructured) bool { return ours(o.GetName()) }, func(o map[string]any) {
			keepOf(o, "spec", "service group version groupPriorityMinimum versionPriority")
		})
}

// state adds a snapshot of what a scheduler reads, the policies with their status, and the number of all objects.
func (b *bundle) state() {
	objects, err := takeSnapshot(b.ctx, b.reach, func(kind string, err error) { b.note("snapshot.yaml: "+kind+"s", err) })
	if err != nil {
		b.note("snapshot.yaml", err)
		return
	}
	if b.anonymous {
		Anonymize(objects)
	}
	b.add("counts.txt", countsOf(objects))
	b.addObjects("policies.yaml", "", slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "SchedulingPolicy"
	}))
	b.addObjects("snapshot.yaml", "", objects)
}

// countsOf counts the objects of each kind by phase or state.
func countsOf(objects []*unstructured.Unstructured) []byte {
	type of struct{ kind, state string }
	counts := map[of]int{}
	var order []of
	for _, o := range objects {
		key := of{kind: o.GetKind()}
		for _, path := range [][]string{{"status", "phase"}, {"status", "state", "phase"}, {"status", "state"}} {
			if state, ok, err := unstructured.NestedString(o.Object, path...); ok && err == nil {
				key.state = state
				break
			}
		}
		if counts[key]++; counts[key] == 1 {
			order = append(order, key)
		}
	}
	slices.SortStableFunc(order, func(a, b of) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.state, b.state)) })
	var out bytes.Buffer
	for _, key := range order {
		fmt.Fprintf(&out, "%6d %s\n", counts[key], strings.TrimSpace(key.kind+" "+key.state))
	}
	return out.Bytes()
}

// summary lists what is in the bundle, and what is missing.
func (b *bundle) summary(file string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, of %s in namespace %s\n\ncollected:\n", file, b.now.Format(time.RFC3339), b.namespace)
	for _, f := range b.files {
		fmt.Fprintf(&out, "  %s, %d bytes\n", f.name, len(f.data))
	}
	if len(b.notes) > 0 {
		out.WriteString("\nnot collected:\n")
		for _, n := range b.notes {
			out.WriteString("  " + strings.ReplaceAll(n, "\n", " ") + "\n")
		}
	}
	return out.String()
}

// save writes the bundle to a new file, or replaces an existing one if overwrite is true.
func (b *bundle) save(file, title string, overwrite bool) (err error) {
	how := os.O_CREATE | os.O_WRONLY | os.O_EXCL
	if overwrite {
		how = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	}
	out, err := os.OpenFile(file, how, 0o600) // it contains data of a whole cluster
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--to: %s is there already; give another name, or --overwrite", file)
	}
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return b.pack(out, title)
}

func (b *bundle) pack(to io.Writer, title string) error {
	zipped := gzip.NewWriter(to)
	packed := tar.NewWriter(zipped)
	for _, f := range append([]bundled{{"summary.txt", []byte(b.summary(title))}}, b.files...) {
		head := &tar.Header{Name: title + "/" + f.name, Mode: 0o600, Size: int64(len(f.data)), ModTime: b.now}
		if err := packed.WriteHeader(head); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := packed.Write(f.data); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}
