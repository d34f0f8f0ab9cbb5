package policy

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/celsius-scheduler/celsius/engine/language"
	"github.com/celsius-scheduler/celsius/rules/tables"
)

// Reasons for which a function may exist for a single built-in table.
const (
	accounting = "accounting"           // an amount or a sum that an expression cannot compute
	kubernetes = "Kubernetes' own rule" // Kubernetes defines it, in Go
	general    = "general"              // it depends only on its arguments; it is a coincidence that one table uses it
)

// oneTable returns the functions that only one built-in table uses, each with the type of reason and the reason.
func oneTable() map[string][2]string {
	return map[string][2]string{
		"waterFill":                   {accounting, "an iteration over all queues"},
		"devices":                     {general, "the algebra of Resources: what is counted in whole pieces"},
		"exceedsAny":                  {general, "the algebra of Resources: > in some dimension"},
		"hdrf":                        {accounting, "shares along a tree, each level of which depends on the ones below"},
		"key":                         {accounting, "a place in that tree"},
		"compare":                     {accounting, "two places in that tree"},
		"with":                        {accounting, "that tree after a change"},
		"without":                     {accounting, "that tree after a change"},
		"admitsCPUs":                  {accounting, "which CPUs the kubelet would give follows from all that it gave before"},
		"numaNodes":                   {accounting, "the same CPUs"},
		"taskBuckets":                 {accounting, "tasks join buckets one after the other, each where those before it are"},
		"bucketOf":                    {accounting, "those buckets"},
		"waitingIn":                   {accounting, "those buckets"},
		"rankOf":                      {accounting, "those buckets"},
		"reachable":                   {accounting, "a maximum flow from what jobs lack to the nodes that they may use"},
		"total":                       {general, "the algebra of Resources: the sum of a map"},
		"bucketFit":                   {accounting, "how many of those that wait have room together"},
		"quotaTree":                   {accounting, "amounts along a tree of queues, whose depth an expression does not know"},
		"waitLimit":                   {general, "an annotation read as a duration: an expression cannot try whether a text is one"},
		"cooldown":                    {general, "a time that an annotation or a label may hold, and may fail to be"},
		"inWindow":                    {general, "a moment and a window of the day, which may go over midnight"},
		"jsonNumbers":                 {general, "JSON read as a map: an expression cannot try whether a text is that"},
		"answer":                      {accounting, "what is said outside, which is no field of an object"},
		"says":                        {accounting, "that answer"},
		"text":                        {accounting, "that answer"},
		"score":                       {accounting, "that answer"},
		"askedAt":                     {accounting, "that answer"},
		"strategyFit":                 {accounting, "a mean over the resources that a pod asks for, by names and patterns"},
		"takes":                       {accounting, "room on a device, as it is counted there"},
		"max":                         {general, "the larger amount in each dimension"},
		"memoryFor":                   {accounting, "what is counted on a device for a task"},
		"binpack":                     {accounting, "a mean over the resources that a pod asks for, which an expression cannot list"},
		"firstUntolerated":            {kubernetes, "the taint that the filter TaintToleration names"},
		"intolerablePreferNoSchedule": {kubernetes, "the score of TaintToleration"},
		"matchesNodeAffinity":         {kubernetes, "the filter NodeAffinity"},
		"nodeAffinityScore":           {kubernetes, "the score of NodeAffinity"},
		"portsFree":                   {kubernetes, "the filter NodePorts"},
		"toleratesAll":                {kubernetes, "the filter TaintToleration"},
		"toleratesUnschedulable":      {kubernetes, "the filter NodeUnschedulable"},
		"affinityFits":                {kubernetes, "the filter InterPodAffinity"},
		"affinityScore":               {kubernetes, "the score InterPodAffinity"},
		"spreadFits":                  {kubernetes, "the filter PodTopologySpread"},
		"spreadApplies":               {kubernetes, "the nodes that the score PodTopologySpread leaves out"},
		"spreadScore":                 {kubernetes, "the score PodTopologySpread"},
		"imageLocality":               {kubernetes, "the score ImageLocality"},
		"balanced":                    {kubernetes, "the score NodeResourcesBalancedAllocation"},
		"leastAllocated":              {kubernetes, "the strategy LeastAllocated of NodeResourcesFit"},
		"claimsExist":                 {kubernetes, "a part of what VolumeBinding asks beforehand"},
		"volumeTrouble":               {kubernetes, "what VolumeBinding says beforehand"},
		"volumePlaces":                {kubernetes, "the node affinity of volumes, in words"},
		"volumesFit":                  {kubernetes, "the filter VolumeBinding"},
		"volumeZonesFit":              {kubernetes, "the filter VolumeZone"},
		"volumeLimitsFit":             {kubernetes, "the filter NodeVolumeLimits"},
		"volumesFree":                 {kubernetes, "the filter VolumeRestrictions"},
		"mostAllocated":               {kubernetes, "the strategy MostAllocated of NodeResourcesFit"},
	}
}

// vocabularyDocs returns the documentation of named functions and of attribute functions, by name.
func vocabularyDocs(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, f := range Vocabulary().Functions {
		if unicode.IsLetter(rune(f.Name[0])) {
			docs[f.Name] = f.Doc
		}
	}
	for _, f := range AccountingFunctions() {
		docs[f.Name] = f.Doc
	}
	if len(docs) < 20 {
		t.Fatalf("only %d functions were found", len(docs))
	}
	return docs
}

// usersOf returns the built-in tables whose text calls each function. "actions" counts as one.
func usersOf(t *testing.T) map[string][]string {
	t.Helper()
	users := map[string][]string{}
	for _, name := range append(ShippedNames(), "actions") {
		data, err := fs.ReadFile(tables.FS, name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`(?m)(^|\s)#.*$`).ReplaceAllString(string(data), "")
		for function := range vocabularyDocs(t) {
			call := `\b` + function + `\(` // a call in an expression
			if slices.ContainsFunc(AccountingFunctions(), isCalled(function)) {
				call = `\b` + function + `:` // a key of an attribute
			}
			if regexp.MustCompile(call).MatchString(text) {
				users[function] = append(users[function], name)
			}
		}
	}
	return users
}

func isCalled(name string) func(fn *Accounting) bool {
	return func(fn *Accounting) bool { return fn.Name == name }
}

// TestFunctionsOfOneTable compares the list above with the built-in tables. A function that exists only for one table would be policy in
// Go.
func TestFunctionsOfOneTable(t *testing.T) {
	var found, listed []string
	for function, users := range usersOf(t) {
		if len(users) == 1 {
			found = append(found, function)
		}
	}
	for function, why := range oneTable() {
		listed = append(listed, function)
		if !slices.Contains([]string{accounting, kubernetes, general}, why[0]) || len(strings.Fields(why[1])) < 1 {
			t.Errorf("%s: %q is no reason", function, why)
		}
	}
	slices.Sort(found)
	slices.Sort(listed)
	if diff := cmp.Diff(listed, found); diff != "" {
		t.Errorf("functions that only one shipped table uses (-listed +found)\n%s", diff)
	}
}

// TestFunctionsAreDocumented checks that every function is documented by a sentence.
func TestFunctionsAreDocumented(t *testing.T) {
	docs := vocabularyDocs(t)
	for _, f := range Vocabulary().Functions {
		docs[f.Name] = f.Doc // operators need documentation, too
	}
	for name, doc := range docs {
		if words := strings.Fields(doc); len(words) < 2 || !strings.HasSuffix(doc, ".") {
			t.Errorf("%s: %q is no sentence", name, doc)
		}
		for _, table := range ShippedNames() {
			if regexp.MustCompile(`\b` + table + `\b`).MatchString(doc) {
				t.Errorf("%s: the documentation names the table %s: %q", name, table, doc)
			}
		}
	}
}

// TestNoFunctionDecides fails for a function that takes a whole job or queue and returns a verdict, because that would be a plugin.
func TestNoFunctionDecides(t *testing.T) {
	for _, f := range Vocabulary().Functions {
		for _, o := range f.Overloads {
			for _, arg := range o.Args {
				whole := arg.IsExactType(language.JobType()) || arg.IsExactType(language.QueueType()) || arg.IsExactType(language.ClusterType())
				if whole && o.Result.String() == "bool" {
					t.Errorf("%s(%v) gives a verdict on a whole %s", f.Name, o.Args, arg)
				}
			}
		}
	}
}
