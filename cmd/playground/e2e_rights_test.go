package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// audited is an entry of the API server's audit log.
type audited struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus          struct{ Code int }
}

// account returns the part that sent the request, or "" for other clients.
func (a *audited) account() string {
	name, ok := strings.CutPrefix(a.User.Username, "system:serviceaccount:"+systemNamespace+":")
	if !ok {
		return ""
	}
	return name
}

func readAudit(t *testing.T, file string) []audited {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []audited
	for line := range strings.Lines(string(text)) {
		var a audited
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			continue // the last entry may be incomplete
		}
		if a.account() != "" {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s tells of no request of a part", file)
	}
	return out
}

// granted is one permission: a verb on a resource.
type granted struct {
	account, verb, group, resource, name string
	inNamespace                          bool // only in the namespace of the parts
}

func (g granted) String() string {
	text := fmt.Sprintf("%s: %s %s", g.account, g.verb, g.resource)
	if g.group != "" {
		text += "." + g.group
	}
	if g.name != "" {
		text += "/" + g.name
	}
	return text
}

// usedBy reports whether a request needed the permission. A watch also counts as a list, because an informer receives its list through the
// watch if the API server supports it, and lists otherwise.
func (g granted) usedBy(a *audited) bool {
	resource := a.ObjectRef.Resource
	if a.ObjectRef.Subresource != "" {
		resource += "/" + a.ObjectRef.Subresource
	}
	verb := a.Verb == g.verb || a.Verb == "watch" && g.verb == "list"
	return a.account() == g.account && verb && a.ObjectRef.APIGroup == g.group && resource == g.resource &&
		(g.name == "" || a.ObjectRef.Name == g.name) && (!g.inNamespace || a.ObjectRef.Namespace == systemNamespace)
}

// grants lists the permissions in the roles of the parts. A role has the same name as the account that it is bound to.
func grants(t *testing.T, objects map[string][][]byte) []granted {
	t.Helper()
	var out []granted
	add := func(account string, rules []rbacv1.PolicyRule, inNamespace bool) {
		for _, rule := range rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							out = append(out, granted{account, verb, group, resource, name, inNamespace})
						}
					}
				}
			}
		}
	}
	for _, r := range decoded[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		add(r.Name, r.Rules, false)
	}
	for _, r := range decoded[rbacv1.Role](t, objects, "Role") {
		add(r.Name, r.Rules, true)
	}
	return out
}

// spareRights are permissions that the story of TestE2EDeploy need not use, with their purpose.
var spareRights = map[string]string{
	"celsius-scheduler: create pods/eviction":                     "no pod makes room for another in the story",
	"celsius-scheduler: create endpointslices.discovery.k8s.io":   "an apply that makes it needs this too, and is noted as a patch",
	"celsius-scheduler: delete pods":                              "no policy of the story deletes",
	"celsius-scheduler: get pods":                                 "a binding that had no answer is asked after",
	"celsius-scheduler: get persistentvolumes":                    "no pod of the story has a claim that waits",
	"celsius-scheduler: update persistentvolumes":                 "no pod of the story has a claim that waits",
	"celsius-scheduler: get persistentvolumeclaims":               "no pod of the story has a claim that waits",
	"celsius-scheduler: update persistentvolumeclaims":            "no pod of the story has a claim that waits",
	"celsius-scheduler: list nodes.metrics.k8s.io":                "no policy of the story reads the load of nodes",
	"celsius-scheduler: patch events":                             "an event that is told again is counted in the first",
	"celsius-scheduler: delete controllerrevisions.apps":          "only so many policies are kept",
	"celsius-scheduler: update controllerrevisions.apps":          "who tries a policy that is stored stands where it is kept",
	"celsius-controllers: list namespaces":                        "all pods of the story that a controller owns name their queue",
	"celsius-controllers: watch namespaces":                       "all pods of the story that a controller owns name their queue",
	"celsius-controllers: get jobs.batch.volcano.sh":              "a cache that may be behind is not believed",
	"celsius-controllers: patch jobs.batch.volcano.sh":            "jobs that queues send to other clusters are marked",
	"celsius-controllers: patch cronjobs/status.batch.volcano.sh": "no CronJob of the story starts a Job",
	"celsius-controllers: update cronjobs/finalizers.batch.volcano.sh": "asked of who makes objects that hold up the deletion of their " +
		"owner, where that admission plugin is on",
	"celsius-controllers: update jobflows/finalizers.flow.volcano.sh": "asked of who makes objects that hold up the deletion of their " +
		"owner, where that admission plugin is on",
	"celsius-controllers: get pods":                               "a cache that may be behind is not believed",
	"celsius-controllers: get podgroups.scheduling.volcano.sh":    "a cache that may be behind is not believed",
	"celsius-controllers: patch podgroups.scheduling.volcano.sh":  "a job that is scaled",
	"celsius-controllers: delete podgroups.scheduling.volcano.sh": "a job that is made anew",
	"celsius-controllers: update jobs/finalizers.batch.volcano.sh": "asked of who makes objects that hold up the deletion of their owner, " +
		"where that admission plugin is on",
	"celsius-controllers: get persistentvolumeclaims":              "no job of the story mounts a claim",
	"celsius-controllers: create persistentvolumeclaims":           "no job of the story asks for a claim",
	"celsius-controllers: get statefulsets.apps":                   "as for the ReplicaSets of the story",
	"celsius-controllers: get daemonsets.apps":                     "as for the ReplicaSets of the story",
	"celsius-controllers: get queues.scheduling.volcano.sh":        "a cache that may be behind is not believed",
	"celsius-controllers: patch events":                            "an event that is told again is counted in the first",
	"celsius-controllers: list priorityclasses.scheduling.k8s.io":  "no job of the story names a class",
	"celsius-controllers: watch priorityclasses.scheduling.k8s.io": "no job of the story names a class",
	"celsius-controllers: get configmaps":                          "what is beside a job is read when the job is scaled",
	"celsius-controllers: patch configmaps":                        "a job that is scaled",
	"celsius-controllers: get services":                            "what is beside a job is read when the job is scaled",
	"celsius-controllers: patch services":                          "a plugin that makes another Service of a job that is scaled",
	"celsius-controllers: get networkpolicies.networking.k8s.io":   "what is beside a job is read when the job is scaled",
	"celsius-controllers: patch networkpolicies.networking.k8s.io": "a plugin that makes another policy of a job that is scaled",
	"celsius-webhook: get namespaces":                              "all PodGroups of the story name their queue",
	"celsius-webhook: get podgroups.scheduling.volcano.sh":         "each pod of the story that names a group is made by a controller",
	"celsius-webhook: get jobs.batch.volcano.sh":                   "asked of Commands on Jobs",
	"celsius-webhook: update secrets/celsius-webhook-certs":        "certificates of the story are new",
}

// checkRights checks that no request of the parts was refused, and that all their permissions were used.
func checkRights(t *testing.T, objects map[string][][]byte, file string) {
	t.Helper()
	requests := readAudit(t, file)
	refused := map[string]bool{}
	for i := range requests {
		if a := &requests[i]; a.ResponseStatus.Code == 403 {
			refused[fmt.Sprintf("%s: %s %s", a.account(), a.Verb, a.RequestURI)] = true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(refused)) {
		t.Errorf("was refused to %s", what)
	}
	told := map[string]bool{}
	for _, g := range grants(t, objects) {
		used := slices.ContainsFunc(requests, func(a audited) bool { return g.usedBy(&a) })
		told[g.String()] = true
		if used && spareRights[g.String()] != "" {
			t.Logf("%s: was used, though it need not be", g)
		}
		if !used && spareRights[g.String()] == "" {
			t.Errorf("%s: was never used; take it out of the role, or say in spareRights what it is for", g)
		}
	}
	for what := range spareRights {
		if !told[what] {
			t.Errorf("%s: is listed in spareRights, and not granted", what)
		}
	}
}
