package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretName names the Secret with the serving certificate that all replicas share, and with the CA bundle that clients trust.
const secretName = "celsius-webhook-certs"

// Lifetime of a created certificate, and the time before its end at which it is renewed. A certificate is valid from clockSkew before its
// creation, because clocks differ.
const (
	goodFor      = 90 * 24 * time.Hour
	renewedAhead = 30 * 24 * time.Hour
	clockSkew    = time.Hour
)

// certSource provides the serving certificate and the bundle of authorities that clients trust.
type certSource interface {
	load(ctx context.Context, now time.Time, names []string) (*tls.Certificate, []byte, error)
	// shared reports whether the certificates are stored in the Secret.
	shared() bool
}

func newCertSource(o Options, c client.Client) certSource {
	if o.CertDir != "" {
		return certFolder(o.CertDir)
	}
	return &certSecret{client: c, namespace: o.Namespace}
}

// certFolder is a folder with certificates that another program renews.
type certFolder string

func (f certFolder) shared() bool { return false }

func (f certFolder) load(context.Context, time.Time, []string) (*tls.Certificate, []byte, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(string(f), corev1.TLSCertKey), filepath.Join(string(f), corev1.TLSPrivateKeyKey))
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate in %s: %w", f, err)
	}
	bundle, err := os.ReadFile(filepath.Join(string(f), authorityCert))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("read the authority in %s: %w", f, err)
	}
	return &pair, bundle, nil
}

// certSecret is a Secret with certificates that the replicas create and share.
type certSecret struct {
	client    client.Client
	namespace string
}

func (c *certSecret) shared() bool { return true }

// load reads the Secret, and first creates or renews what is missing. If another replica wrote the Secret first, load uses that replica's
// certificates.
func (c *certSecret) load(ctx context.Context, now time.Time, names []string) (*tls.Certificate, []byte, error) {
	const tries = 5
	var err error
	for range tries {
		var made certificates
		if made, err = c.once(ctx, now, names); err == nil {
			pair, err := tls.X509KeyPair(made.cert, made.key)
			if err != nil {
				return nil, nil, fmt.Errorf("certificate of the Secret %s/%s: %w", c.namespace, secretName, err)
			}
			return &pair, made.bundle, nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return nil, nil, fmt.Errorf("certificates in the Secret %s/%s: %w", c.namespace, secretName, err)
}

func (c *certSecret) once(ctx context.Context, now time.Time, names []string) (certificates, error) {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: secretName}, secret); client.IgnoreNotFound(err) != nil {
		return certificates{}, err
	}
	held := certificates{bundle: secret.Data[authorityCert], cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey]}
	renewed, err := held.renew(now, names)
	if err != nil || renewed.equal(held) {
		return renewed, err
	}
	secret.Name, secret.Type = secretName, corev1.SecretTypeTLS
	secret.Data = map[string][]byte{authorityCert: renewed.bundle, corev1.TLSCertKey: renewed.cert, corev1.TLSPrivateKeyKey: renewed.key}
	return renewed, c.write(ctx, secret)
}

// write creates a Secret, or updates the Secret that was read.
func (c *certSecret) write(ctx context.Context, secret *corev1.Secret) error {
	if secret.ResourceVersion != "" {
		return c.client.Update(ctx, secret, client.FieldOwner(FieldManager))
	}
	secret.Namespace = c.namespace
	err := c.client.Create(ctx, secret, client.FieldOwner(FieldManager))
	if apierrors.IsNotFound(err) {
		// The namespace may not exist outside a deployment.
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
		if err := client.IgnoreAlreadyExists(c.client.Create(ctx, namespace)); err != nil {
			return fmt.Errorf("namespace %s is missing, and cannot be made: %w", c.namespace, err)
		}
		err = c.client.Create(ctx, secret, client.FieldOwner(FieldManager))
	}
	return err
}

// authorityCert is the key of the authorities in the Secret, and the name of their file.
const authorityCert = "ca.crt"

// certificates contains the serving certificate and the authorities that clients trust, in PEM. It does not contain the key of an
// authority. Each authority signs one certificate and its key is discarded, so that no reader of the Secret can sign another one.
type certificates struct {
	// bundle contains the current authority, followed by earlier authorities that are still valid.
	bundle    []byte
	cert, key []byte
}

func (c certificates) equal(d certificates) bool {
	return bytes.Equal(c.bundle, d.bundle) && bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key)
}

// renew returns certificates that are valid now for the names. It keeps the present ones unless they are missing, broken or about to
// expire. Otherwise it creates new ones with an authority of their own. An earlier authority stays trusted until it expires, because
// replicas serve with the certificate that it signed until they read the new one.
func (c certificates) renew(now time.Time, names []string) (certificates, error) {
	c.bundle = stillGood(c.bundle, now)
	known := c.servingNames(now)
	if known != nil && !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(known, n) }) {
		return c, nil
	}
	der, signer, err := makeCertificate(now, nil, nil, nil)
	if err != nil {
		return certificates{}, err
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return certificates{}, fmt.Errorf("read the authority just made: %w", err)
	}
	c.bundle = append(encodeCert(der), c.bundle...)
	// The names of other replicas stay in the certificate.
	all := slices.Concat(names, known)
	slices.Sort(all)
	der, key, err := makeCertificate(now, slices.Compact(all), authority, signer)
	if err != nil {
		return certificates{}, err
	}
	if c.key, err = encodeKey(key); err != nil {
		return certificates{}, err
	}
	c.cert = encodeCert(der)
	return c, nil
}

// servingNames returns the names in the serving certificate, or nil if a new certificate is required.
func (c certificates) servingNames(now time.Time) []string {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil || pair.Leaf == nil || now.After(pair.Leaf.NotAfter.Add(-renewedAhead)) {
		return nil
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(c.bundle)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: now}); err != nil {
		return nil
	}
	names := slices.Clone(pair.Leaf.DNSNames)
	for _, ip := range pair.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// stillGood removes expired certificates, and everything that is not a certificate, from a bundle.
func stillGood(bundle []byte, now time.Time) []byte {
	var out []byte
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return out
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(cert.NotAfter) {
			out = append(out, encodeCert(block.Bytes)...)
		}
	}
}

// makeCertificate creates a key and a certificate. Without a parent, the certificate is an authority.
func makeCertificate(now time.Time, names []string, parent *x509.Certificate, signer *ecdsa.PrivateKey) (der []byte,
	key *ecdsa.PrivateKey, err error,
) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "celsius-webhook"},
		NotBefore: now.Add(-clockSkew), NotAfter: now.Add(goodFor),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	if parent == nil {
		template.Subject.CommonName = "celsius-webhook-ca"
		template.IsCA, template.KeyUsage, template.ExtKeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature, nil
		parent, signer = template, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer); err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return der, key, nil
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
