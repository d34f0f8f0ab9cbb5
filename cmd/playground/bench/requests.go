package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/component-base/metrics/legacyregistry"
)

// requests contains numbers of requests, by verb and resource.
type requests map[string]float64

// servedRequests returns the requests that the API server in this process has answered so far, from all clients. It omits watches, Leases
// and requests without a resource.
func servedRequests() (requests, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return nil, fmt.Errorf("requests at the API server: %w", err)
	}
	out := requests{}
	for _, family := range families {
		if family.GetName() != "apiserver_request_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			label := map[string]string{}
			for _, l := range m.GetLabel() {
				label[l.GetName()] = l.GetValue()
			}
			verb, resource := strings.ToLower(label["verb"]), label["resource"]
			if verb == "watch" || resource == "" || resource == "leases" {
				continue
			}
			if sub := label["subresource"]; sub != "" {
				resource += "/" + sub
			}
			out[verb+" "+resource] += m.GetCounter().GetValue()
		}
	}
	return out, nil
}

// since returns the difference to before.
func (r requests) since(before requests) requests {
	out := requests{}
	for kind, n := range r {
		if n -= before[kind]; n > 0 {
			out[kind] = n
		}
	}
	return out
}

// sum returns the total number of requests.
func (r requests) sum() (n float64) {
	for _, of := range r {
		n += of
	}
	return n
}

// writes returns how many of the requests write a consequence of a binding.
func (r requests) writes() (n float64) {
	for kind, of := range r {
		if strings.HasPrefix(kind, "get ") || strings.HasPrefix(kind, "list ") {
			continue
		}
		switch resourceOf(kind) {
		case "pods", "bindings", "podgroups", "queues", "events", "jobs":
			n += of
		}
	}
	return n
}

// resourceOf returns the resource of a kind of request, without the subresource.
func resourceOf(kind string) string {
	_, resource, _ := strings.Cut(kind, " ")
	resource, _, _ = strings.Cut(resource, "/")
	return resource
}

// each formats the number of requests per thing. It omits kinds with few requests, which are sent only once.
func (r requests) each(things int) string {
	var out []string
	rest := 0.0
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		if n := r[kind]; n*1000 >= float64(things) {
			out = append(out, fmt.Sprintf("%s %.3f", kind, n/float64(things)))
		} else {
			rest += n
		}
	}
	return strings.Join(append(out, fmt.Sprintf("others %.0f in all", rest)), ", ")
}

// all formats the number of requests of each kind.
func (r requests) all() string {
	if len(r) == 0 {
		return "none"
	}
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		out = append(out, fmt.Sprintf("%s %.0f", kind, r[kind]))
	}
	return strings.Join(out, ", ")
}
