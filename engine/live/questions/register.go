package questions

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// APIServiceName is the name of the APIService that routes questions to the Service.
const APIServiceName = Version + "." + Group

// serviceName returns the name of the Service. Outside of a cluster the name differs from the one in deploy, so that both can exist.
func (s *Server) serviceName() string {
	if net.ParseIP(s.Host) == nil {
		return ServiceName + "-outside"
	}
	return ServiceName
}

// certificate creates the server's certificate, and returns it with its authority.
func (s *Server) certificate() (pair tls.Certificate, authority []byte, err error) {
	cert, key, err := certutil.GenerateSelfSignedCertKey(s.serviceName()+"."+s.Namespace+".svc", nil, nil)
	if err != nil {
		return pair, nil, fmt.Errorf("make a certificate: %w", err)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		return pair, nil, fmt.Errorf("make a certificate: %w", err)
	}
	// The leaf comes first, then its issuer.
	_, rest := pem.Decode(cert)
	return pair, bytes.TrimSpace(rest), nil
}

// registerEvery is how often the registration is written: objects of it that were deleted are created again.
const registerEvery = 30 * time.Second

// register writes the address of the server until ctx ends. Outside of a cluster it then deletes the registration.
func (s *Server) register(ctx context.Context, port int, authority []byte) {
	for wait := time.Second; ctx.Err() == nil; {
		next := registerEvery
		if err := s.write(ctx, port, authority); err != nil && ctx.Err() == nil {
			next, wait = wait, min(2*wait, registerEvery)
			s.Log.Info("writing the registration of the API for questions failed; it is tried again", "after", next.String(),
				"error", err.Error())
		} else {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(next):
		}
	}
	if net.ParseIP(s.Host) != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return // the next leader overwrites it
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := errors.Join(s.Ending.Delete(ending, s.apiService(port, nil)), s.Ending.Delete(ending, s.service(port))); err != nil {
		s.Log.Info("the API server still looks for an answer here", "error", err.Error())
	}
}

// write applies the Service or its EndpointSlice, and the APIService.
func (s *Server) write(ctx context.Context, port int, authority []byte) error {
	where := s.service(port)
	if net.ParseIP(s.Host) != nil {
		where = s.slice(port)
	}
	owner := client.FieldOwner("celsius-scheduler")
	for _, object := range []*unstructured.Unstructured{where, s.apiService(port, authority)} {
		if err := s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), owner, client.ForceOwnership); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

func (s *Server) object(apiVersion, kind, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// service returns a Service that refers to a server outside of the cluster by its name.
func (s *Server) service(port int) *unstructured.Unstructured {
	return s.object("v1", "Service", s.Namespace, s.serviceName(), map[string]any{
		"spec": map[string]any{"type": "ExternalName", "externalName": s.Host, "ports": []any{map[string]any{"port": int64(port)}}},
	})
}

// slice returns an EndpointSlice that makes the Service, which has no pod selector, refer to the leader.
func (s *Server) slice(port int) *unstructured.Unstructured {
	family := "IPv4"
	if net.ParseIP(s.Host).To4() == nil {
		family = "IPv6"
	}
	u := s.object("discovery.k8s.io/v1", "EndpointSlice", s.Namespace, ServiceName, map[string]any{
		"addressType": family,
		"endpoints":   []any{map[string]any{"addresses": []any{s.Host}, "conditions": map[string]any{"ready": true}}},
		"ports":       []any{map[string]any{"name": "", "port": int64(port), "protocol": "TCP"}},
	})
	u.SetLabels(map[string]string{
		"kubernetes.io/service-name": ServiceName, "endpointslice.kubernetes.io/managed-by": "celsius-scheduler",
	})
	return u
}

// apiService returns the APIService that routes to the Service and contains its certificate authority.
func (s *Server) apiService(port int, authority []byte) *unstructured.Unstructured {
	to := map[string]any{"namespace": s.Namespace, "name": s.serviceName()}
	if net.ParseIP(s.Host) == nil { // otherwise the port is 443, or another port that a user has set
		to["port"] = int64(port)
	}
	spec := map[string]any{
		"group": Group, "version": Version, "groupPriorityMinimum": int64(100), "versionPriority": int64(10), "service": to,
	}
	if authority != nil {
		spec["caBundle"] = base64.StdEncoding.EncodeToString(authority)
	}
	return s.object("apiregistration.k8s.io/v1", "APIService", "", APIServiceName, map[string]any{"spec": spec})
}
