package engine_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/celsius-scheduler/celsius"

// These constants name groups of packages that several entries of the tables share.
const (
	allOurs    = "..."
	allCRDs    = "crds/batch/v1alpha1 crds/bus/v1alpha1 crds/flow/v1alpha1 crds/nodeinfo/v1alpha1 crds/policy/v1alpha1 crds/scheduling/v1beta1"
	apiObjects = "k8s.io/api k8s.io/apimachinery"
	// loadAPI is the API of measured load.
	loadAPI = "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	// podMath is the arithmetic of Kubernetes on pods and taints. Some of it takes a logr logger, which here always discards its messages.
	podMath = "k8s.io/component-helpers github.com/go-logr/logr"
	// podClass computes the quality of service class of a pod.
	podClass = "k8s.io/kubectl/pkg/util/qos"
	clients  = apiObjects + " k8s.io/client-go sigs.k8s.io/controller-runtime"
	// metricsLog is for packages that run in a cluster: their metrics and logs.
	metricsLog = "github.com/prometheus/client_golang github.com/go-logr/logr k8s.io/klog/v2"
	allOthers  = "..."
	ofPolicy   = "engine/disruption engine/extender engine/follow engine/language engine/model engine/policy/params engine/quota " +
		"engine/report engine/topology rules rules/eval rules/source rules/tables crds/policy/v1alpha1"
	belowReference = "engine/reference/answers engine/reference/devices engine/reference/eviction engine/reference/values"
	belowProof     = "engine/reference/answers engine/reference/devices engine/reference/values"
	simOurs        = "engine engine/explain engine/extender engine/model engine/policy engine/session engine/whatif rules/source " +
		"statemachines/objects " + allCRDs
	simOthers = apiObjects + " " + loadAPI + " k8s.io/component-helpers sigs.k8s.io/yaml golang.org/x/tools/txtar"
)

// mayImport lists for each package of this module which other packages of the module it may import. A package that is not listed fails the
// test. An entry for a package that does not exist yet does no harm.
var mayImport = map[string]string{
	"crds":                    "",
	"crds/batch/v1alpha1":     "",
	"crds/bus/v1alpha1":       "",
	"crds/decode":             "",
	"crds/generate":           "crds/decode " + allCRDs,
	"crds/flow/v1alpha1":      "crds/batch/v1alpha1",
	"crds/nodeinfo/v1alpha1":  "",
	"crds/informers":          "crds/decode " + allCRDs,
	"crds/policy/v1alpha1":    "",
	"crds/scheduling/v1beta1": "",
	"rules":                   "crds/decode rules/source",
	"rules/eval":              "rules rules/source",
	"rules/source":            "",
	"rules/layout":            "rules/source",
	"rules/typed":             "rules rules/eval rules/source",
	"rules/admission":         "",
	"rules/jobplugins":        "",
	"rules/tables":            "",
	"engine/follow":           "",
	"engine/page":             "",
	"engine/slab":             "",
	"engine/subsets":          "",
	"engine/rivals":           "",
	"engine/unread":           "",
	"engine/seeds":            "",
	"engine/digest":           "engine/model",
	"engine/digest/sums":      "engine/digest",
	"engine/cards":            "",
	"engine/numa":             "crds/decode crds/nodeinfo/v1alpha1",
	"engine/extender":         "",
	"engine/podspec":          "",
	"engine/volume/none":      "engine/model",
	"engine/model": "engine/cards engine/extender engine/follow engine/numa engine/podspec engine/rivals engine/slab " +
		"engine/unread crds/decode " + allCRDs,
	"engine/quota":      "engine/follow engine/model",
	"engine/volume":     "engine/follow engine/model",
	"engine/report":     "engine/model rules/source",
	"engine/kept":       "engine/model",
	"engine/topology":   "engine/follow engine/model engine/slab",
	"engine/disruption": "engine/follow engine/model",
	"engine/bucket":     "engine/model crds/scheduling/v1beta1",
	"engine/language": "engine/bucket engine/cards engine/disruption engine/extender engine/follow engine/model engine/numa engine/quota " +
		"engine/slab engine/topology engine/volume/none rules rules/eval",
	"engine/policy":          ofPolicy + " engine/policy/kinds engine/policy/parts engine/policy/rollback engine/policy/size",
	"engine/policy/params":   "engine/language rules rules/source",
	"engine/policy/join":     "engine/policy engine/policy/parts rules/source",
	"engine/policy/kinds":    "rules rules/eval rules/source",
	"engine/policy/parts":    "",
	"engine/policy/rollback": "rules/source",
	"engine/policy/size":     "rules/source",
	"engine/policy/text":     "engine/policy rules/source",
	"engine/policy/facts":    "engine/language engine/policy rules rules/eval",
	"engine/policy/lint":     "engine/language engine/policy rules rules/eval rules/source",
	"engine/policy/coverage": "engine/policy engine/policy/facts rules/eval rules/source",
	"engine/session/oracle":  "",
	"engine/verdict": "engine/follow engine/language engine/model engine/policy engine/report engine/slab engine/topology rules " +
		"rules/eval",
	"engine/session": "engine/follow engine/language engine/model engine/policy engine/policy/facts engine/quota engine/slab engine/verdict " +
		"rules rules/eval rules/source",
	"engine/volcano": "engine/policy crds/decode rules rules/source",
	"engine/action": "engine/eviction engine/follow engine/kept engine/model engine/policy engine/report engine/session engine/slab " +
		"engine/verdict",
	"engine/explain": "engine/model engine/policy engine/report engine/session rules/eval rules/source",
	"engine/whatif": "engine engine/explain engine/model engine/policy engine/policy/join engine/refuse engine/session rules/source " +
		"statemachines/jobplugin " +
		"statemachines/objects crds/batch/v1alpha1 crds/scheduling/v1beta1",
	"engine/compare": "engine engine/explain engine/model engine/policy engine/recording engine/sim engine/sim/manifest engine/volume " +
		"rules/source " + allCRDs,
	"engine/recording": "engine engine/extender engine/model engine/policy engine/rivals engine/session engine/unread " +
		"engine/volume " + allCRDs,
	"engine/eviction":  "engine/model engine/policy engine/report engine/session engine/slab engine/subsets",
	"engine":           "engine/model engine/policy engine/session engine/action",
	"engine/reference": "engine/kept engine/language engine/model engine/policy engine/report rules rules/eval " + belowReference,
	"engine/reference/answers": "engine/language engine/model engine/policy engine/report engine/reference/devices engine/reference/values " +
		"rules/eval",
	"engine/proof":              "engine/language engine/model engine/numa engine/policy " + belowProof,
	"engine/reference/devices":  "engine/model",
	"engine/reference/eviction": "engine/model engine/policy engine/report engine/reference/answers engine/subsets",
	"engine/reference/values":   "engine/language engine/model engine/policy engine/quota rules rules/eval",
	"engine/sim": simOurs + " engine/page engine/podspec engine/policy/join engine/sim/classes engine/sim/manifest " +
		"engine/refuse engine/sim/stored engine/sim/textdiff statemachines statemachines/jobplugin",
	"engine/sim/manifest": "engine/extender engine/model rules/source statemachines/objects crds/batch/v1alpha1 crds/nodeinfo/v1alpha1 " +
		"crds/scheduling/v1beta1 crds/decode",
	"engine/sim/classes":     "engine/model engine/sim/manifest rules/source statemachines/objects crds/batch/v1alpha1",
	"engine/sim/stored":      "engine/model engine/sim/manifest rules/source statemachines/objects crds/batch/v1alpha1",
	"engine/refuse":          "",
	"engine/sim/textdiff":    "",
	"engine/sim/choose":      "engine/policy engine/policy/join engine/sim/manifest rules/source crds/policy/v1alpha1",
	"engine/try":             "engine/sim engine/sim/choose engine/sim/manifest rules/source",
	"engine/sim/corpus":      "",
	"engine/sim/conformance": simOurs + " engine/sim engine/volcano engine/volume rules",
	"engine/sim/openb":       simOurs + " engine/sim",
	"engine/live": "engine/live/asks engine/live/beside engine/live/events engine/live/lease engine/live/load engine/live/outbox " +
		"engine/live/recovery rules/source " +
		"engine/live/scrape engine/live/strip " +
		"engine/live/questions engine/live/serving engine/live/shadow engine engine/action engine/explain engine/extender engine/proof " +
		"engine/model engine/report engine/policy engine/recording engine/session engine/volume crds/informers " +
		"statemachines/objects " + allCRDs,
	"engine/live/asks": "engine/extender engine/live/recovery engine/model",
	"engine/live/beside": "engine engine/compare engine/explain engine/model engine/policy engine/session " +
		"crds/scheduling/v1beta1",
	"engine/live/lease":     "",
	"engine/live/load":      "",
	"engine/live/outbox":    "engine/live/recovery",
	"engine/live/recovery":  "",
	"engine/live/questions": "engine engine/explain engine/model engine/policy engine/whatif crds/batch/v1alpha1 crds/scheduling/v1beta1",
	"engine/live/serving": "engine/model engine/policy engine/policy/join engine/policy/parts engine/policy/rollback rules/source " +
		"crds/policy/v1alpha1",
	"engine/live/shadow": "engine engine/live/serving engine/model engine/policy crds/policy/v1alpha1",
	"engine/live/strip":  "engine/model crds/batch/v1alpha1 crds/scheduling/v1beta1",
	"statemachines":      "rules rules/eval rules/source",
	"statemachines/controller": "engine/live/events engine/live/recovery engine/live/lease engine/live/scrape " +
		"rules/typed statemachines statemachines/cron " +
		"statemachines/controller/flows statemachines/jobplugin " +
		"statemachines/objects crds/decode " +
		"crds/informers " + allCRDs,
	"statemachines/controller/flows": "engine/live/recovery statemachines statemachines/flow " +
		"crds/batch/v1alpha1 crds/flow/v1alpha1",
	"statemachines/jobplugin": "crds crds/batch/v1alpha1 crds/decode rules rules/eval rules/jobplugins rules/source rules/typed",
	"statemachines/cron":      "crds/batch/v1alpha1",
	"statemachines/flow":      "crds/batch/v1alpha1 crds/flow/v1alpha1",
	"statemachines/objects":   "engine/model crds/decode rules/source statemachines/jobplugin " + allCRDs,
	"webhook": "engine/live/recovery engine/live/scrape rules rules/eval rules/source rules/typed rules/admission statemachines " +
		"statemachines/cron statemachines/flow statemachines/jobplugin engine/policy crds crds/decode " +
		"crds/informers " + allCRDs,
	"deploy":             "",
	"deploy/pages":       "",
	"engine/live/scrape": "",
	"docs": "rules rules/source engine/live engine/policy statemachines statemachines/controller statemachines/jobplugin " +
		"webhook",
	"engine/live/events": "rules/source",
	"cmd/celsius":        allOurs,
	"cmd/celsius/cluster": "cmd/celsius/dashboard cmd/celsius/try engine/explain engine/live/lease engine/live/questions " +
		"engine/live/serving engine/model engine/podspec engine/whatif rules/source statemachines/objects " + allCRDs,
	"cmd/celsius/try": "engine/page",
	"cmd/celsius/dashboard": "cmd/celsius/try crds/informers engine/explain engine/live engine/live/questions engine/live/scrape " +
		"engine/model engine/page engine/podspec engine/policy engine/policy/parts rules/source " + allCRDs,
	"cmd/celsius/lsp": "cmd/celsius/schemas engine/policy engine/policy/facts rules rules/source statemachines statemachines/jobplugin " +
		"webhook",
	"cmd/celsius/schemas": "crds engine/policy engine/policy/kinds engine/sim/manifest rules rules/source rules/typed statemachines " +
		"statemachines/jobplugin webhook",
	"cmd/playground":       allOurs,
	"cmd/playground/bench": "crds/batch/v1alpha1 crds/scheduling/v1beta1 engine/live",
}

// mayImportOthers lists the same for other modules, by the start of the import path. The standard library is free here. The linters check
// what the core may use of it.
var mayImportOthers = map[string]string{
	"crds":                    "",
	"crds/batch/v1alpha1":     apiObjects,
	"crds/bus/v1alpha1":       apiObjects,
	"crds/decode":             apiObjects,
	"crds/generate":           apiObjects + " sigs.k8s.io/yaml",
	"crds/flow/v1alpha1":      apiObjects,
	"crds/nodeinfo/v1alpha1":  apiObjects,
	"crds/informers":          clients + " github.com/prometheus/client_golang github.com/go-logr/logr",
	"crds/policy/v1alpha1":    apiObjects,
	"crds/scheduling/v1beta1": apiObjects,
	"rules":                   "github.com/google/cel-go k8s.io/apiserver/pkg/cel",
	"rules/eval":              "github.com/google/cel-go k8s.io/apiserver/pkg/cel",
	"rules/source":            "gopkg.in/yaml.v3 sigs.k8s.io/yaml",
	"rules/layout":            "github.com/google/cel-go gopkg.in/yaml.v3",
	"rules/typed":             "github.com/google/cel-go k8s.io/apiextensions-apiserver k8s.io/apimachinery",
	"rules/admission":         "",
	"rules/jobplugins":        "",
	"rules/tables":            "",
	"engine/follow":           "",
	"engine/page":             "",
	"engine/slab":             "",
	"engine/subsets":          "",
	"engine/rivals":           "",
	"engine/unread":           apiObjects,
	"engine/seeds":            "pgregory.net/rapid",
	"engine/digest":           "",
	"engine/digest/sums":      "",
	"engine/cards":            apiObjects,
	"engine/numa":             apiObjects + " k8s.io/utils/cpuset",
	"engine/extender":         apiObjects,
	"engine/podspec":          apiObjects + " " + podMath,
	"engine/volume/none":      "",
	"engine/model":            apiObjects + " " + podClass + " " + podMath + " " + loadAPI,
	"engine/quota":            "",
	"engine/report":           apiObjects,
	"engine/kept":             "",
	"engine/volume": apiObjects + " " + podMath +
		" k8s.io/client-go k8s.io/klog/v2 k8s.io/kube-scheduler/framework k8s.io/kubernetes/pkg/scheduler",
	"engine/topology":           apiObjects,
	"engine/disruption":         "",
	"engine/bucket":             "",
	"engine/language":           apiObjects + " " + podMath + " " + podClass + " github.com/google/cel-go",
	"engine/policy":             apiObjects + " " + podMath + " github.com/google/cel-go",
	"engine/policy/facts":       "github.com/google/cel-go",
	"engine/policy/params":      "github.com/google/cel-go",
	"engine/policy/lint":        "github.com/google/cel-go",
	"engine/policy/coverage":    "",
	"engine/session/oracle":     "",
	"engine/verdict":            "github.com/google/cel-go",
	"engine/session":            "github.com/google/cel-go",
	"engine/volcano":            "",
	"engine/action":             "",
	"engine/compare":            simOthers + " golang.org/x/sync",
	"engine/policy/text":        "",
	"engine/policy/rollback":    "",
	"engine/policy/join":        "",
	"engine/policy/kinds":       "github.com/google/cel-go",
	"engine/policy/parts":       "",
	"engine/policy/size":        "",
	"engine/recording":          apiObjects + " " + loadAPI + " github.com/go-logr/logr",
	"engine/eviction":           "",
	"engine/proof":              "",
	"engine/reference":          "",
	"engine/reference/answers":  "github.com/google/cel-go",
	"engine/reference/eviction": "",
	"engine/reference/devices":  "",
	"engine/reference/values":   "github.com/google/cel-go",
	"engine":                    "",
	"engine/sim":                simOthers,
	"engine/sim/manifest":       apiObjects + " " + loadAPI + " k8s.io/component-helpers sigs.k8s.io/yaml",
	"engine/sim/choose":         "",
	"engine/sim/classes":        apiObjects,
	"engine/sim/stored":         apiObjects,
	"engine/refuse":             apiObjects + " k8s.io/apiserver k8s.io/kubernetes k8s.io/utils/clock",
	"engine/sim/textdiff":       "",
	"engine/try":                "golang.org/x/tools/txtar",
	"engine/sim/corpus":         "",
	"engine/sim/conformance":    simOthers,
	"engine/sim/openb":          simOthers,
	"engine/live":               clients + " k8s.io/component-helpers " + loadAPI + " " + metricsLog,
	"engine/live/asks":          apiObjects + " github.com/go-logr/logr",
	"engine/live/lease":         clients,
	"engine/live/load": apiObjects + " " + loadAPI + " github.com/go-logr/logr" +
		" github.com/prometheus/client_golang github.com/prometheus/common/model",
	"engine/live/beside":       apiObjects + " k8s.io/client-go github.com/go-logr/logr",
	"engine/live/outbox":       "",
	"engine/live/recovery":     "github.com/prometheus/client_golang k8s.io/apimachinery",
	"engine/live/serving":      clients + " github.com/go-logr/logr github.com/prometheus/client_golang github.com/prometheus/client_model",
	"engine/live/shadow":       apiObjects + " github.com/go-logr/logr github.com/prometheus/client_golang",
	"engine/live/questions":    clients + " github.com/go-logr/logr k8s.io/apiserver",
	"engine/explain":           "",
	"engine/whatif":            apiObjects,
	"statemachines":            "github.com/looplab/fsm github.com/google/cel-go gopkg.in/yaml.v3",
	"statemachines/controller": clients + " " + metricsLog + " golang.org/x/time",
	"statemachines/controller/flows": apiObjects +
		" k8s.io/client-go sigs.k8s.io/controller-runtime",
	"statemachines/flow":      apiObjects,
	"statemachines/jobplugin": apiObjects + " github.com/google/cel-go golang.org/x/crypto/ssh",
	"statemachines/cron":      apiObjects + " github.com/robfig/cron/v3",
	"statemachines/objects":   apiObjects + " k8s.io/component-helpers/resource",
	"webhook": clients + " " + metricsLog +
		" github.com/google/cel-go k8s.io/apiserver/pkg/cel k8s.io/apiserver/pkg/authentication/user k8s.io/apiserver/pkg/authorization" +
		" k8s.io/apiextensions-apiserver k8s.io/kubernetes gomodules.xyz/jsonpatch/v2",
	"deploy": "",
	"deploy/pages": "github.com/google/go-cmp github.com/prometheus/client_golang github.com/prometheus/client_model " +
		"github.com/prometheus/common",
	"engine/live/scrape": clients + " " + metricsLog,
	"engine/live/strip":  apiObjects,
	"docs":               "github.com/prometheus/client_golang",
	"engine/live/events": apiObjects + " k8s.io/client-go",
	"cmd/celsius": clients + " " + metricsLog +
		" github.com/spf13/cobra github.com/spf13/pflag github.com/fsnotify/fsnotify golang.org/x/term k8s.io/cli-runtime sigs.k8s.io/yaml " +
		"gopkg.in/yaml.v3",
	"cmd/celsius/try":     "github.com/andybalholm/brotli golang.org/x/tools/txtar",
	"cmd/celsius/lsp":     "github.com/google/cel-go gopkg.in/yaml.v3",
	"cmd/celsius/schemas": apiObjects + " k8s.io/apiextensions-apiserver sigs.k8s.io/yaml",
	"cmd/celsius/cluster": clients + " github.com/spf13/cobra github.com/spf13/pflag golang.org/x/term k8s.io/cli-runtime " +
		"k8s.io/component-helpers k8s.io/klog/v2 mvdan.cc/sh/v3 sigs.k8s.io/yaml",
	"cmd/celsius/dashboard": clients + " github.com/go-logr/logr github.com/prometheus",
	"cmd/playground":        allOthers,
	"cmd/playground/bench":  clients + " github.com/spf13/cobra golang.org/x/sys/unix k8s.io/component-base/metrics sigs.k8s.io/yaml",
}

// TestImports checks the imports between packages. Packages import simpler ones only.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		path, imports, _ := strings.Cut(strings.TrimSpace(line), " ")
		pkg := strings.TrimPrefix(path, module+"/")
		_, listed := mayImport[pkg]
		_, listedOthers := mayImportOthers[pkg]
		if !listed || !listedOthers {
			t.Errorf("%s: not in both tables; say what it may import", pkg)
			continue
		}
		for imp := range strings.FieldsSeq(imports) {
			if !mayUse(pkg, imp) {
				t.Errorf("%s imports %s", pkg, imp)
			}
		}
	}
}

// mayUse reports whether the tables let the package import the path.
func mayUse(pkg, imp string) bool {
	if ours, ok := strings.CutPrefix(imp, module+"/"); ok {
		return mayImport[pkg] == allOurs || slices.Contains(strings.Fields(mayImport[pkg]), ours)
	}
	first, _, _ := strings.Cut(imp, "/")
	if !strings.Contains(first, ".") {
		return true // the standard library
	}
	return mayImportOthers[pkg] == allOthers || slices.ContainsFunc(strings.Fields(mayImportOthers[pkg]), func(allowed string) bool {
		return imp == allowed || strings.HasPrefix(imp, allowed+"/")
	})
}

// TestImportTables checks what the tables refuse.
func TestImportTables(t *testing.T) {
	for _, c := range []struct {
		pkg, imp string
		want     bool
	}{
		{"rules", "strings", true},
		{"rules", "github.com/google/cel-go/cel", true},
		{"rules", module + "/engine/model", false},
		{"engine/model", module + "/rules", false},
		{"engine/model", "k8s.io/api/core/v1", true},
		{"engine/model", "k8s.io/apiserver/pkg/cel", false},
		{"engine/action", "github.com/google/cel-go/cel", false},
		{"engine", "k8s.io/client-go/kubernetes", false},
		{"engine/sim", "sigs.k8s.io/yaml", true},
		{"cmd/celsius", module + "/engine/sim", true},
		{"cmd/celsius", "k8s.io/kubernetes/cmd/kube-apiserver/app", false},
	} {
		if got := mayUse(c.pkg, c.imp); got != c.want {
			t.Errorf("mayUse(%s, %s) = %v, want %v", c.pkg, c.imp, got, c.want)
		}
	}
}
