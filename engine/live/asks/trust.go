package asks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say what is known of servers beside their addresses. The zero value is of use.
type Options struct {
	// TLS names, by HOST:PORT of a server, the folder with what its TLS needs, in files as a Secret of the type kubernetes.io/tls has them:
	// ca.crt, with the certificates of who may vouch for the server, and tls.crt with tls.key, by which the scheduler says who it is. One
	// may do without the other. They are read for each connection.
	TLS map[string]string
}

// The files of a folder.
const (
	authorityFile   = "ca.crt"
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// Check refuses what cannot be meant.
func (o Options) Check() error {
	for _, server := range slices.Sorted(maps.Keys(o.TLS)) {
		host, port, err := net.SplitHostPort(server)
		if err != nil || host == "" || port == "" || strings.Contains(server, "/") {
			return fmt.Errorf("TLS of extender %q: write HOST:PORT=FOLDER, as extender.kube-system:8443=/etc/celsius/extender", server)
		}
		if _, err := o.trust().config(server); err != nil {
			return fmt.Errorf("TLS of extender %s: %w", server, err)
		}
	}
	return nil
}

// trust is which servers are believed, and what they are shown: folders, by HOST:PORT.
type trust map[string]string

func (o Options) trust() trust {
	out := trust{}
	for server, folder := range o.TLS {
		out[strings.ToLower(server)] = folder
	}
	return out
}

// client makes the requests. It uses no proxy and follows no redirect: what is asked goes where the policy says. A connection is made on
// after the request that it is for was given up, so making one has a time of its own; and one that is shared by requests is tried now and
// then, as one whose other end is gone without a word would keep all of them from a server that is back.
func (t trust) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer().DialContext, DialTLSContext: t.dial, MaxIdleConnsPerHost: mostRequests, IdleConnTimeout: time.Minute,
			ForceAttemptHTTP2: true, HTTP2: &http.HTTP2Config{SendPingTimeout: mostQuiet, PingTimeout: mostQuiet},
			MaxResponseHeaderBytes: mostHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func dialer() *net.Dialer { return &net.Dialer{Timeout: mostDial} }

// untold is an error of which nobody is told but the log: it may name files.
type untold struct{ error }

// Unwrap gives what is wrong.
func (u untold) Unwrap() error { return u.error }

// dial makes a connection by TLS, with the files as they are now.
func (t trust) dial(ctx context.Context, network, server string) (net.Conn, error) {
	config, err := t.config(server)
	if err != nil {
		return nil, untold{err}
	}
	return (&tls.Dialer{NetDialer: dialer(), Config: config}).DialContext(ctx, network, server)
}

// config is what TLS with a server needs.
func (t trust) config(server string) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	folder, ok := t[strings.ToLower(server)]
	if !ok {
		return out, nil
	}
	authorities, err := os.ReadFile(filepath.Join(folder, authorityFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	vouched := err == nil
	if vouched {
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s has no certificate: it must have some as PEM", filepath.Join(folder, authorityFile))
		}
	}
	certificate, key := filepath.Join(folder, certificateFile), filepath.Join(folder, keyFile)
	switch pair, err := tls.LoadX509KeyPair(certificate, key); {
	case err == nil:
		out.Certificates = []tls.Certificate{pair}
	case !vouched && missing(certificate) && missing(key):
		return nil, fmt.Errorf("%s has neither %s, nor %s with %s", folder, authorityFile, certificateFile, keyFile)
	case !missing(certificate) || !missing(key):
		return nil, fmt.Errorf("%s and %s: %w", certificate, key, err)
	}
	return out, nil
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

// mayBeAsked refuses to send in the clear what is to go by TLS.
func (t trust) mayBeAsked(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme == "http" {
		if _, ok := t[serverOf(address)]; ok {
			return "its address must begin with https://, as certificates are given for it"
		}
	}
	return ""
}

// serverOf is the HOST:PORT of an address; "": it has none.
func serverOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
