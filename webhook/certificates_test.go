package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// trusted reports whether a client that trusts the bundle accepts a certificate for a name.
func trusted(t *testing.T, bundle, cert, key []byte, name string, now time.Time) bool {
	t.Helper()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: now})
	return err == nil
}

func TestRenew(t *testing.T) {
	const day = 24 * time.Hour
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	names := []string{"a.svc", "127.0.0.1"}
	renew := func(c certificates, after time.Duration, names ...string) certificates {
		t.Helper()
		out, err := c.renew(begin.Add(after), names)
		if err != nil {
			t.Fatal(err)
		}
		if !trusted(t, out.bundle, out.cert, out.key, names[0], begin.Add(after)) {
			t.Errorf("after %s: what is served is not trusted", after)
		}
		return out
	}
	first := renew(certificates{}, 0, names...)
	if !trusted(t, first.bundle, first.cert, first.key, "127.0.0.1", begin) || trusted(t, first.bundle, first.cert, first.key,
		"b.svc", begin) {
		t.Error("it must be good for its names, and for no other")
	}
	if !renew(first, 59*day, names...).equal(first) {
		t.Error("renewed too early")
	}

	// One month before its end, the certificate is replaced, and another authority signs the new one. The old certificate stays trusted until
	// its own end.
	second := renew(first, 61*day, names...)
	if second.equal(first) {
		t.Error("after 61 days: want a new certificate")
	}
	if at := begin.Add(61 * day); !trusted(t, second.bundle, first.cert, first.key, "a.svc", at) ||
		trusted(t, first.bundle, second.cert, second.key, "a.svc", at) {
		t.Error("replicas that serve with the old certificate are not trusted any more, or whoever signed it has signed the new")
	}
	if third := renew(second, 122*day, names...); trusted(t, third.bundle, first.cert, first.key, "a.svc", begin) {
		t.Error("an authority that has expired is still handed out")
	}

	// A replica that is reached by another name adds this name. It keeps the names of other replicas.
	added := renew(first, day, "b.svc")
	if at := begin.Add(day); !trusted(t, added.bundle, added.cert, added.key, "a.svc", at) ||
		!trusted(t, added.bundle, first.cert, first.key, "a.svc", at) {
		t.Error("a new name: the names before, or the authority, are lost")
	}
	if !renew(added, 2*day, names...).equal(added) {
		t.Error("who is reached by fewer names makes the certificate anew")
	}

	// A certificate that cannot be used is replaced.
	other := renew(certificates{}, 0, names...)
	for what, c := range map[string]certificates{
		"no authority":      {cert: first.cert, key: first.key},
		"rubbish":           {bundle: []byte("a"), cert: []byte("c"), key: []byte("d")},
		"another's key":     {bundle: first.bundle, cert: first.cert, key: second.key},
		"another authority": {bundle: other.bundle, cert: first.cert, key: first.key},
		"not good yet":      renew(certificates{}, 5*day, names...),
	} {
		if renew(c, day, names...).equal(c) {
			t.Errorf("%s: taken as it is", what)
		}
	}
}
