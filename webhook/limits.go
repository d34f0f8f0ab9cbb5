package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Limits on the cost of one request. The body of a review has at most 7 MiB, which controller-runtime checks. It contains the new and the
// old object, each within maxObject. The API server does not store larger objects either. The other limits apply before an object is
// decoded. Decoding and rows use up to 6 KB of memory for each object and list in it.
const (
	maxObject    = 3 << 20
	maxElements  = 10_000  // in one list, or keys in one object
	maxComposite = 30_000  // objects and lists in an object
	maxScalars   = 100_000 // strings, numbers, bools and nulls in an object
	// Rows and Kubernetes' validation visit the parts of pod templates many times, and use up to 6 KB of memory per object or list.
	maxTemplateComposite = 8_000
	maxTemplateScalars   = 15_000
	maxDepth             = 200
	// maxReviews is the number of requests that are handled at a time; others wait. The memory limit in deploy/webhook is sufficient if all of
	// them are at their limits.
	maxReviews = 8
)

// level is an open list or object at the present position in a JSON text.
type level struct {
	list     bool
	wantsKey bool
	key      []byte // the last one read
	elements int
}

// jsonScan counts the elements of a JSON text without decoding it. For a text that is not JSON the counts have no meaning, and decoding
// refuses it later.
type jsonScan struct {
	open                     []level
	composite, scalars       int
	maxComposite, maxScalars int
}

// scanOf returns a scan with the limits for objects of a resource.
func scanOf(resource string) jsonScan {
	switch resource {
	case "jobs", "cronjobs", "jobtemplates":
		return jsonScan{maxComposite: maxTemplateComposite, maxScalars: maxTemplateScalars}
	}
	return jsonScan{maxComposite: maxComposite, maxScalars: maxScalars}
}

// tooMuch returns why an object is too large to be decoded, or nil.
func (s *jsonScan) tooMuch(raw []byte) *Mistake {
	if len(raw) > maxObject {
		return &Mistake{Message: fmt.Sprintf("the object has %d bytes, and admission accepts %d; make it smaller", len(raw), maxObject)}
	}
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		top := len(s.open) - 1
		switch {
		case strings.IndexByte(" \t\n\r", c) >= 0:
			continue
		case c == ':' && top >= 0:
			s.open[top].wantsKey = false
			continue
		case c == ',' && top >= 0:
			s.open[top].wantsKey = !s.open[top].list
			continue
		case c == '}' || c == ']':
			s.open = s.open[:max(top, 0)]
			continue
		}
		end := endOf(raw, i)
		if top >= 0 && s.open[top].wantsKey {
			if s.open[top].elements++; s.open[top].elements > maxElements {
				s.open = s.open[:top]
				return &Mistake{Field: s.path(), Message: fmt.Sprintf("has more than %d keys; make several objects, each with fewer", maxElements)}
			}
			s.open[top].key, i = raw[i:end], end-1
			continue
		}
		if wrong := s.value(c); wrong != "" {
			return &Mistake{Field: s.path(), Message: wrong}
		}
		i = end - 1
	}
	return nil
}

// endOf returns where the string or other scalar at a position ends. For a list or an object it returns the position of its content.
func endOf(raw []byte, at int) int {
	switch raw[at] {
	case '{', '[':
		return at + 1
	case '"':
		for i := at + 1; i < len(raw); i++ {
			switch raw[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(raw)
	}
	if n := bytes.IndexAny(raw[at:], ",]}: \t\n\r"); n >= 0 {
		return at + max(n, 1)
	}
	return len(raw)
}

// value counts a value that begins with c. If the count exceeds a limit, it returns the message.
func (s *jsonScan) value(c byte) string {
	if top := len(s.open) - 1; top >= 0 && s.open[top].list {
		if s.open[top].elements++; s.open[top].elements > maxElements {
			return fmt.Sprintf("has more than %d elements; make several objects, each with fewer", maxElements)
		}
	}
	if c != '{' && c != '[' {
		if s.scalars++; s.scalars > s.maxScalars {
			return fmt.Sprintf("the object has more than %d values up to here; make several objects, each with fewer", s.maxScalars)
		}
		return ""
	}
	if s.composite++; s.composite > s.maxComposite {
		return fmt.Sprintf("the object has more than %d lists and objects up to here; make several objects, each with fewer", s.maxComposite)
	}
	if len(s.open) >= maxDepth {
		return fmt.Sprintf("is more than %d levels deep", maxDepth)
	}
	s.open = append(s.open, level{list: c == '[', wantsKey: c == '{'})
	return ""
}

// path returns the field at the present position. Deep paths are shortened.
func (s *jsonScan) path() string {
	const shown, long = 8, 64
	var out strings.Builder
	for _, l := range s.open[:min(len(s.open), shown)] {
		if l.list {
			continue // the path contains the list's key and the index of its last element
		}
		key := bytes.Trim(l.key, `"`)
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.Write(key[:min(len(key), long)])
	}
	return strings.ToValidUTF8(out.String(), "?")
}

// limited refuses objects of a resource that are too large before a handler decodes them.
func limited(resource string, h admission.Handler) admission.Handler {
	return admission.HandlerFunc(func(ctx context.Context, req admission.Request) admission.Response {
		for _, part := range []struct {
			name string
			raw  runtime.RawExtension
		}{{"", req.Object}, {"the stored object, which can be deleted: ", req.OldObject}} {
			scan := scanOf(resource)
			if wrong := scan.tooMuch(part.raw.Raw); wrong != nil {
				return admission.Errored(http.StatusRequestEntityTooLarge, fmt.Errorf("%s%s", part.name, wrong))
			}
		}
		return h.Handle(ctx, req)
	})
}

// turns limits how many requests are handled at a time.
type turns chan struct{}

type turnKey struct{}

// serve waits for a turn, and only then reads the body and handles the request.
func (t turns) serve(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case t <- struct{}{}:
		case <-r.Context().Done():
			http.Error(w, "admission is busy with other requests; try again", http.StatusServiceUnavailable)
			return
		}
		defer func() { <-t }()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), turnKey{}, t)))
	})
}

// withoutTurn gives the request's turn to other requests while wait runs.
func withoutTurn(ctx context.Context, wait func()) {
	t, ok := ctx.Value(turnKey{}).(turns)
	if !ok {
		wait()
		return
	}
	<-t
	defer func() { t <- struct{}{} }()
	wait()
}

// verifyClients makes a TLS configuration accept only clients with a certificate that an authority in the file signed.
func verifyClients(c *tls.Config, file string) error {
	if file == "" {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the authorities of clients: %w", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !c.ClientCAs.AppendCertsFromPEM(data) {
		return fmt.Errorf("read the authorities of clients: %s has no certificate in PEM", file)
	}
	return nil
}
