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

// Options contains what is known about servers in addition to their addresses. The zero value is usable.
type Options struct {
	// TLS maps HOST:PORT of a server to a folder with its TLS files. The files have the names of a Secret of type kubernetes.io/tls. The
	// certificates of the server's authority are in ca.crt. The files tls.crt and tls.key identify the scheduler. Either part may be missing.
	// The files are read for each connection.
	TLS map[string]string
}

// Names of the files in a folder.
const (
	authorityFile   = "ca.crt"
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// Check refuses invalid options.
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

// trust contains the folder of each server's TLS files, by HOST:PORT.
type trust map[string]string

func (o Options) trust() trust {
	out := trust{}
	for server, folder := range o.TLS {
		out[strings.ToLower(server)] = folder
	}
	return out
}

// client returns the HTTP client. It uses no proxy and follows no redirect, so requests only go to the servers that the policy names.
// Dialing continues after its request was given up, so it has its own timeout. A shared connection is pinged: if the other end disappeared
// silently, it would keep all requests from a server that is back.
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

// untold is an error that only the log may contain, because it may name files.
type untold struct{ error }

// Unwrap returns the error.
func (u untold) Unwrap() error { return u.error }

// dial opens a TLS connection with the current files.
func (t trust) dial(ctx context.Context, network, server string) (net.Conn, error) {
	config, err := t.config(server)
	if err != nil {
		return nil, untold{err}
	}
	return (&tls.Dialer{NetDialer: dialer(), Config: config}).DialContext(ctx, network, server)
}

// config returns the TLS configuration for a server.
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

// mayBeAsked returns an error text if a request would be sent unencrypted to a server with TLS files.
func (t trust) mayBeAsked(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme == "http" {
		if _, ok := t[serverOf(address)]; ok {
			return "its address must begin with https://, as certificates are given for it"
		}
	}
	return ""
}

// serverOf returns the HOST:PORT of an address; "": it has none.
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
