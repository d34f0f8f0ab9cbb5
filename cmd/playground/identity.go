package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
)

// The files of an identity.
const (
	fileCert       = "apiserver.crt"
	fileCertKey    = "apiserver.key"
	fileAccountKey = "service-account.key"
	fileTokens     = "tokens.csv"
	fileProxyCA    = "front-proxy-ca.crt"
	fileProxy      = "front-proxy.crt"
	fileProxyKey   = "front-proxy.key"
)

// contextName is the name of the cluster, the user and the context in our kubeconfigs.
const contextName = "celsius-playground"

// identity contains the API server's certificate, the key that signs service account tokens, and the administrator's token. It is stored
// with the data, so that these credentials are still valid after a second start.
type identity struct {
	dir   string
	cert  []byte
	token string
}

// loadIdentity reads the identity from the folder, and creates what is missing.
func loadIdentity(dir string) (*identity, error) {
	x := &identity{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	for _, make := range []func() error{x.makeCert, x.makeAccountKey, x.makeToken, x.makeProxy} {
		if err := make(); err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
	}
	return x, nil
}

func (x *identity) path(name string) string { return filepath.Join(x.dir, name) }

// read returns the file's content, or nil if the file does not exist.
func (x *identity) read(name string) ([]byte, error) {
	text, err := os.ReadFile(x.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (x *identity) makeCert() (err error) {
	if x.cert, err = x.read(fileCert); x.cert != nil || err != nil {
		return err
	}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(10, 96, 0, 1)}, names)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	// The key is written first: a certificate without a key would never be created again.
	if err := os.WriteFile(x.path(fileCertKey), key, 0o600); err != nil {
		return err
	}
	x.cert = cert
	return os.WriteFile(x.path(fileCert), cert, 0o600)
}

func (x *identity) makeAccountKey() error {
	if text, err := x.read(fileAccountKey); text != nil || err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(x.path(fileAccountKey), pem.EncodeToMemory(block), 0o600)
}

func (x *identity) makeToken() error {
	text, err := x.read(fileTokens)
	if err != nil {
		return err
	}
	if token, _, ok := strings.Cut(string(text), ","); ok {
		x.token = token
		return nil
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	x.token = hex.EncodeToString(random)
	return os.WriteFile(x.path(fileTokens), []byte(x.token+`,admin,admin,"system:masters"`+"\n"), 0o600)
}

// proxyName is the name of the API server when it calls other servers on behalf of a user.
const proxyName = "front-proxy"

// makeProxy creates an authority that signs one certificate. With it, APIs behind the API server recognize the API server.
func (x *identity) makeProxy() error {
	if text, err := x.read(fileProxyCA); text != nil || err != nil {
		return err
	}
	authorityKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	authority, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: proxyName + "-ca"}, authorityKey)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		Subject: pkix.Name{CommonName: proxyName}, SerialNumber: big.NewInt(2), NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, key.Public(), authorityKey)
	if err != nil {
		return fmt.Errorf("front proxy: %w", err)
	}
	for _, file := range []struct {
		name  string
		block pem.Block
	}{
		{fileProxyKey, pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}},
		{fileProxy, pem.Block{Type: "CERTIFICATE", Bytes: der}},
		{fileProxyCA, pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}}, // the last file: without it, all are created again
	} {
		if err := os.WriteFile(x.path(file.name), pem.EncodeToMemory(&file.block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// restConfig returns the administrator's client configuration. Its limits are so high that the server is the bottleneck.
func (x *identity) restConfig(address string) *rest.Config {
	return &rest.Config{
		Host:            address,
		BearerToken:     x.token,
		TLSClientConfig: rest.TLSClientConfig{CAData: x.cert},
		QPS:             2000,
		Burst:           4000,
	}
}

// mayWriteKubeconfig returns an error for an existing file that a playground did not write.
func mayWriteKubeconfig(path string) error {
	old, err := clientcmd.LoadFromFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("kubeconfig %s is there and cannot be read: %w; give another --kubeconfig", path, err)
	case !isOurs(old):
		return fmt.Errorf("kubeconfig %s was not written by a playground and is not overwritten; give another --kubeconfig", path)
	}
	return nil
}

// writeKubeconfig writes the administrator's kubeconfig, if that is permitted.
func (x *identity) writeKubeconfig(path, address string) error {
	if err := mayWriteKubeconfig(path); err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: x.cert}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{Token: x.token}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	return nil
}

// isOurs reports whether a kubeconfig contains only a playground. This is true for an empty one.
func isOurs(config *clientcmdapi.Config) bool {
	foreign := func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return name != contextName })
	}
	return !foreign(keys(config.Clusters)) && !foreign(keys(config.Contexts)) && !foreign(keys(config.AuthInfos))
}

func keys[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	return out
}
