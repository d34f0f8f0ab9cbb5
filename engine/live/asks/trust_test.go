package asks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/celsius-scheduler/celsius/engine/extender"
)

// authority issues certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.make("authority", true)
	return a
}

func (a *authority) make(name string, is bool) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	what := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: is, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	by, with := a.cert, a.key
	if is {
		by, with = what, key
	}
	der, err := x509.CreateCertificate(rand.Reader, what, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// pair returns a certificate with its key, as PEM.
func (a *authority) pair(name string) (cert, key []byte) {
	a.t.Helper()
	c, k := a.make(name, false)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// folder returns a folder with files.
func folder(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, files)
	return dir
}

func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// The folder of an address contains the authority of the server and the scheduler's certificate. Both are read when a connection is made.
// Other servers get no certificate.
func TestTLS(t *testing.T) {
	servers, clients := newAuthority(t), newAuthority(t)
	start := func(ask tls.ClientAuthType) (address string) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			shown := "nobody"
			if len(r.TLS.PeerCertificates) > 0 {
				shown = r.TLS.PeerCertificates[0].Subject.CommonName
			}
			w.Header().Set("Connection", "close")
			reply200(w, `{"errorMessage": "`+shown+`"}`)
		}))
		cert, key := servers.pair("extender")
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: ask, ClientCAs: clients.pool(), MinVersion: tls.VersionTLS12}
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	mutual, plain, unknown := start(tls.RequireAndVerifyClientCert), start(tls.RequestClientCert), start(tls.RequestClientCert)
	cert, key := clients.pair("scheduler")
	dir := folder(t, map[string][]byte{authorityFile: servers.pem(), certificateFile: cert, keyFile: key})
	o := Options{TLS: map[string]string{mutual: dir, plain: folder(t, map[string][]byte{authorityFile: servers.pem()})}}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	r := newRigOf(t, o, nil)
	says := func(url, want string) {
		t.Helper()
		ask := about(url, extender.Prioritize)
		ask.Nodes = []string{"n1"}
		got := said(r.one(ask))
		if !strings.Contains(got, want) || strings.Contains(got, dir) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
		r.client.CloseIdleConnections()
	}
	says("https://"+mutual+"/x", "answered: scheduler")
	says("https://"+plain+"/x", "answered: nobody")
	says("https://"+unknown+"/x", "certificate signed by unknown authority; who may vouch for it is said to the scheduler, by --extender-tls")
	says("http://"+mutual+"/x", "its address must begin with https://")
	cert, key = clients.pair("renewed")
	put(t, dir, map[string][]byte{certificateFile: cert, keyFile: key})
	says("https://"+mutual+"/x", "answered: renewed")
	put(t, dir, map[string][]byte{authorityFile: clients.pem()})
	says("https://"+mutual+"/x", "certificate signed by unknown authority")
	put(t, dir, map[string][]byte{keyFile: []byte("secret")})
	says("https://"+mutual+"/x", "the scheduler cannot use the files for its TLS")
	r.mu.Lock()
	defer r.mu.Unlock()
	if log := strings.Join(r.logged, "\n"); !strings.Contains(log, dir) || strings.Contains(log, "secret") {
		t.Errorf("logged %s, want which files fail, and nothing of what is in them", log)
	}
}

// Invalid options are refused at the start, with a correction.
func TestTLSMistakes(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.pair("x")
	for _, c := range []struct {
		server string
		files  map[string][]byte
		want   string
	}{
		{"x:1", map[string][]byte{authorityFile: a.pem()}, ""},
		{"x:1", map[string][]byte{certificateFile: cert, keyFile: key}, ""},
		{"x:1", nil, "has neither ca.crt, nor tls.crt with tls.key"},
		{"x:1", map[string][]byte{authorityFile: []byte("none")}, "ca.crt has no certificate: it must have some as PEM"},
		{"x:1", map[string][]byte{authorityFile: a.pem(), certificateFile: cert}, "tls.key: no such file or directory"},
		{"x:1", map[string][]byte{authorityFile: a.pem(), keyFile: key}, "tls.crt: no such file or directory"},
		{"x:1", map[string][]byte{certificateFile: cert, keyFile: []byte("none")}, "failed to find any PEM data in key input"},
		{"x", map[string][]byte{authorityFile: a.pem()}, `TLS of extender "x": write HOST:PORT=FOLDER, as `},
		{"https://x:1", map[string][]byte{authorityFile: a.pem()}, "write HOST:PORT=FOLDER"},
	} {
		err := Options{TLS: map[string]string{c.server: folder(t, c.files)}}.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.server, err, c.want)
		}
	}
}
