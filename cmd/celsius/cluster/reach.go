package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	busv1alpha1 "github.com/celsius-scheduler/celsius/crds/bus/v1alpha1"
	flowv1alpha1 "github.com/celsius-scheduler/celsius/crds/flow/v1alpha1"
	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// Reach is the connection to a cluster as one user.
type Reach struct {
	client.WithWatch
	// Table lists pods in the form in which kubectl shows them: the API server creates the columns.
	Table func(ctx context.Context, namespace string, of metav1.ListOptions) (*metav1.Table, error)
	// Raw reads a path of the API server, which may contain a query. accept is the media type. With a body, it posts the body and returns the
	// answer.
	Raw func(ctx context.Context, path, accept string, body []byte) ([]byte, error)
}

// Options define how commands reach a cluster. Missing fields have the defaults of production.
type Options struct {
	Connect func(*genericclioptions.ConfigFlags) (*Reach, error)
	Now     func() time.Time
	// Patience is how long a command waits for the controllers to complete its request.
	Patience time.Duration
	// Env reads an environment variable.
	Env func(name string) string
}

// tool contains what all commands of one program share.
type tool struct {
	Options
	flags *genericclioptions.ConfigFlags
}

// Commands returns the commands with the conventions of kubectl.
func Commands(o Options) []*cobra.Command {
	t := &tool{o.withDefaults(), nil}
	return t.flagged(
		t.jobCommand(), t.queueCommand(), t.podCommand(), t.flowCommand(jobFlows()), t.flowCommand(jobTemplates()), t.topCommand(),
		t.explainCommand(), t.whatIfCommand(), t.dashboardCommand(), t.snapshotCommand(), t.bundleCommand(),
	)
}

// flagged adds the flags that select a cluster to the commands.
func (t *tool) flagged(all ...*cobra.Command) []*cobra.Command {
	t.flags = Flags()
	for _, c := range all {
		t.flags.AddFlags(c.PersistentFlags())
		_ = c.RegisterFlagCompletionFunc("namespace", t.namespaces)
	}
	return all
}

// Flags returns the flags of kubectl that select the cluster and the user.
func Flags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true)
	flags.APIServer, flags.TLSServerName, flags.CertFile, flags.KeyFile, flags.CAFile, flags.Insecure = nil, nil, nil, nil, nil, nil
	flags.DisableCompression, flags.CacheDir, flags.BearerToken, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil, nil
	return flags
}

func (o Options) withDefaults() Options {
	if o.Connect == nil {
		o.Connect = connect
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	if o.Env == nil {
		o.Env = os.Getenv
	}
	return o
}

// Scheme returns a scheme with the kinds that the commands read and write.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	err := errors.Join(clientscheme.AddToScheme(s), batchv1alpha1.AddToScheme(s), busv1alpha1.AddToScheme(s), flowv1alpha1.AddToScheme(s),
		schedulingv1beta1.AddToScheme(s))
	return s, err
}

// nowhere is the address that the library uses if no cluster is configured.
const nowhere = "http://localhost:8080"

func connect(flags *genericclioptions.ConfigFlags) (*Reach, error) {
	cfg, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	if cfg.Host == nowhere {
		return nil, errors.New("no cluster is configured: set KUBECONFIG, give --kubeconfig, or run in a pod")
	}
	cfg.QPS, cfg.Burst, cfg.UserAgent = 50, 300, "celsius-cli"
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	table := func(ctx context.Context, namespace string, of metav1.ListOptions) (*metav1.Table, error) {
		out := &metav1.Table{}
		err := kube.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
			VersionedParams(&of, clientscheme.ParameterCodec).Do(ctx).Into(out)
		return out, err
	}
	raw := func(ctx context.Context, path, accept string, body []byte) ([]byte, error) {
		request := kube.CoreV1().RESTClient().Get()
		if body != nil {
			request = kube.CoreV1().RESTClient().Post().SetHeader("Content-Type", "application/json").Body(body)
		}
		path, query, _ := strings.Cut(path, "?")
		of, err := url.ParseQuery(query)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		for key := range of {
			request = request.Param(key, of.Get(key))
		}
		result := request.AbsPath(path).SetHeader("Accept", accept).Do(ctx)
		if err := result.Error(); err != nil { // it contains the server's message, which the error of Raw does not
			return nil, err
		}
		return result.Raw()
	}
	return &Reach{c, table, raw}, nil
}

// reach connects, and returns the namespace of a command; "" means all namespaces.
func (t *tool) reach(all bool) (r *Reach, namespace string, err error) {
	if r, err = t.Connect(t.flags); err != nil || all {
		return r, "", err
	}
	namespace, _, err = t.flags.ToRawKubeConfigLoader().Namespace()
	return r, namespace, err
}

// namespaces completes the name of a namespace.
func (t *tool) namespaces(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	r, _, err := t.reach(true)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = "v1", "NamespaceList"
	return names(c.Context(), r, list), cobra.ShellCompDirectiveNoFileComp
}

// named completes names of objects that are not yet among the arguments.
func (t *tool) named(apiVersion, kind string, namespaced bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		r, namespace, err := t.reach(!namespaced)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &metav1.PartialObjectMetadataList{}
		list.APIVersion, list.Kind = apiVersion, kind+"List"
		return without(names(c.Context(), r, list, client.InNamespace(namespace)), args), cobra.ShellCompDirectiveNoFileComp
	}
}

func names(ctx context.Context, r *Reach, list *metav1.PartialObjectMetadataList, of ...client.ListOption) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := r.List(ctx, list, of...); err != nil {
		return nil
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// say writes to a stream. It ignores errors, because there is no other stream to report them.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
