package questions

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// trustName is the ConfigMap with the certificate authority of the API server's client certificate and the headers for the user.
const trustName = "extension-apiserver-authentication"

// reviewBackoff returns the backoff for retries if the API server does not respond.
func reviewBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 3}
}

// gate authenticates and authorizes users.
type gate struct {
	authenticator.Request
	authorizer.Authorizer
}

// newGate returns a gate that accepts the user that the API server names in its headers, or a token.
func newGate(ctx context.Context, cfg *rest.Config, all *sync.WaitGroup) (*gate, error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(trustName, metav1.NamespaceSystem, kube,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix",
		"requestheader-allowed-names")
	authority, err := dynamiccertificates.NewDynamicCAFromConfigMapController("explain", metav1.NamespaceSystem, trustName,
		"requestheader-client-ca-file", kube)
	if err != nil {
		return nil, fmt.Errorf("trust the API server: %w", err)
	}
	if err := headers.RunOnce(ctx); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s, which says how the API server tells who asks: %w", metav1.NamespaceSystem, trustName, err)
	}
	if err := authority.RunOnce(ctx); err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s, which says by what the API server is known: %w", metav1.NamespaceSystem, trustName, err)
	}
	all.Go(func() { headers.Run(ctx, 1) })
	all.Go(func() { authority.Run(ctx, 1) })
	who := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		TokenAccessReviewClient:  kube.AuthenticationV1(),
		TokenAccessReviewTimeout: 10 * time.Second,
		WebhookRetryBackoff:      reviewBackoff(),
		CacheTTL:                 time.Minute,
		RequestHeaderConfig: &authenticatorfactory.RequestHeaderConfig{
			UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
			UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
			GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
			ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
			AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
			CAContentProvider:   authority,
		},
	}
	may := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: kube.AuthorizationV1(), AllowCacheTTL: time.Minute, DenyCacheTTL: 10 * time.Second,
		WebhookRetryBackoff: reviewBackoff(),
	}
	g := &gate{}
	if g.Request, _, err = who.New(); err != nil {
		return nil, fmt.Errorf("know who asks: %w", err)
	}
	if g.Authorizer, err = may.New(); err != nil {
		return nil, fmt.Errorf("know what they may: %w", err)
	}
	return g, nil
}

// who returns the user of a request; nil: unknown.
func (g *gate) who(r *http.Request) user.Info {
	said, ok, err := g.AuthenticateRequest(r)
	if err != nil || !ok {
		return nil
	}
	return said.User
}

// may reports whether a user may read an explanation. resource is jobs, pods, queues or nodes; name "" means all of them.
func (g *gate) may(ctx context.Context, u user.Info, verb, resource, namespace, name string) (bool, error) {
	decided, _, err := g.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: verb, APIGroup: Group, APIVersion: Version, Resource: resource, Namespace: namespace, Name: name, ResourceRequest: true,
	})
	return decided == authorizer.DecisionAllow, err
}
