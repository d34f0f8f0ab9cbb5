package main

import (
	"context"
	"strings"
	"testing"
	"time"

	schedulingv1beta1 "github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
)

// tenantRights permits a tenant everything that a batch user does in the world's namespace, and nothing outside it. The owner of a queue
// may also patch that queue.
const tenantRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant}
rules:
- {apiGroups: [bus.volcano.sh, batch.volcano.sh, scheduling.volcano.sh, ""], resources: [commands, jobs, podgroups, pods], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: User, name: "${world}-tenant"}, {kind: User, name: "${world}-owner"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "${world}-owner"}
rules:
- {apiGroups: [scheduling.volcano.sh], resources: [queues], resourceNames: ["${queue.a}"], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "${world}-owner"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "${world}-owner"}
subjects: [{kind: User, name: "${world}-owner"}]
`

// TestE2ETenant lets a tenant try forbidden actions: to command a queue, and to admit the tenant's own group.
func TestE2ETenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.StartScheduler()
	w.StartControllers()
	w.Nodes(1, "cpu=4,memory=8Gi")
	queue := w.queue("a", 1)
	w.Kubectl("wait", "queue/"+queue, "--for=jsonpath={.status.state}=Open")
	w.Apply(tenantRights)
	t.Cleanup(func() { // the world only deletes objects in its namespace
		runCommand(t, playgroundCommand(context.Background(), "kubectl", "--kubeconfig", w.Kubeconfig, "delete", "clusterrole/"+w.Name+"-owner",
			"clusterrolebinding/"+w.Name+"-owner"))
	})
	denied := func(who, text, want string, args ...string) {
		t.Helper()
		r := w.TryKubectl(text, append([]string{"--as=${world}-" + who}, args...)...)
		if r.Code == 0 || !strings.Contains(r.Err, want) {
			t.Errorf("%s %v: exit code %d and %q, want %q", who, args, r.Code, r.Out+r.Err, want)
		}
	}
	let := func(who, text string, args ...string) {
		t.Helper()
		if r := w.TryKubectl(text, append([]string{"--as=${world}-" + who}, args...)...); r.Code != 0 {
			t.Errorf("%s %v: %s", who, args, r.Err)
		}
	}

	// Commands.
	command := w.commandText("CloseQueue", "Queue", queue)
	denied("tenant", command, "you may not patch it", "create", "-f", "-")
	denied("owner", strings.Replace(command, w.field("queue/"+queue, ".metadata.uid"), `""`, 1), "target.uid is empty", "create", "-f", "-")
	denied("owner", strings.ReplaceAll(w.commandText("CloseQueue", "Queue", "default"), "closequeue", "other"), "you may not patch it",
		"create", "-f", "-")
	stay := strings.NewReplacer("kind: Queue", "kind: Nothing", "{name: closequeue}", "{name: stays}").Replace(command)
	let("tenant", stay, "create", "-f", "-")
	denied("tenant", strings.Replace(command, "{name: closequeue}", "{name: stays}", 1), "you may not patch it", "apply", "--server-side",
		"--force-conflicts", "-f", "-")
	if state := w.field("queue/"+queue, ".status.state"); state != "Open" {
		t.Errorf("the queue is %s", state)
	}
	w.guarded()
	let("owner", command, "create", "-f", "-")
	w.Kubectl("wait", "queue/"+queue, "--for=jsonpath={.status.state}=Closed")

	// Groups. A new group that states that it runs is stored as waiting. A later change to this is refused, and so is a group in a queue that
	// does not accept jobs.
	group := `
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: forged}
spec: {queue: default, minMember: 1, minResources: {cpu: 1M}}
status: {phase: Running}
`
	let("tenant", group, "create", "-f", "-")
	if phase := w.field("podgroup/forged", ".status.phase"); phase != "Pending" {
		t.Errorf("a new group is %s", phase)
	}
	denied("tenant", "", "may say where a group stands", "patch", "podgroup/forged", "--type=merge", "--field-manager=celsius-scheduler", "-p",
		`{"status":{"phase":"Running"}}`)
	denied("tenant", strings.NewReplacer("forged", "rooted", "queue: default", "queue: root").Replace(group), "only holds other queues",
		"create", "-f", "-")
	denied("tenant", "", "only holds other queues", "patch", "podgroup/forged", "--type=merge", "-p", `{"spec":{"queue":"root"}}`)

	// A group that passed admission anyway is not bound. Here the administrator created it, and one has an owner that is not checked.
	account := w.field("serviceaccount/default", ".metadata.uid")
	rooted := "podgroup-" + account
	ofPods := "{name: " + rooted + ", ownerReferences: [{apiVersion: v1, kind: ServiceAccount, name: default, controller: true, uid: " +
		account + "}]}"
	denied("tenant", strings.NewReplacer("{name: forged}", ofPods).Replace(group), "may say where a group stands", "create",
		"--field-manager=celsius-scheduler", "-f", "-")
	denied("tenant", strings.NewReplacer("{name: forged}", ofPods, "cpu: 1M", "cpu: -1", "status: {phase: Running}", "").Replace(group),
		"write what the pods that must start together ask for", "create", "-f", "-")
	w.Apply(strings.NewReplacer("{name: forged}", ofPods, "queue: default", "queue: root", "status: {phase: Running}", "").Replace(group))
	w.Kubectl("patch", "podgroup/"+rooted, "--type=merge", "-p", `{"status":{"phase":"Running"}}`)
	w.Kubectl("patch", "podgroup/forged", "--type=merge", "-p", `{"status":{"phase":"Running"}}`)
	for _, name := range []string{rooted, "forged"} {
		w.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: ` + name + `, annotations: {scheduling.k8s.io/group-name: ` + name + `}}
spec:
  schedulerName: ${scheduler}
  containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]
`)
	}
	w.Kubectl("wait", "pod/"+rooted, "--for=condition=PodScheduled=False")
	w.Kubectl("wait", "podgroup/forged", "--for=jsonpath={.status.conditions[0].type}=Unschedulable")
	time.Sleep(time.Second) // no pod may be bound from now on either
	for _, p := range w.Pods("") {
		if p.Spec.NodeName != "" {
			t.Errorf("pod %s is bound", p.Name)
		}
	}
	g := &schedulingv1beta1.PodGroup{}
	w.Wait("the group is Pending again", func() error { return w.Get("forged", g) })
	if g.Status.Phase != schedulingv1beta1.PodGroupPending {
		t.Errorf("what the scheduler did not let in is %s", g.Status.Phase)
	}
}
