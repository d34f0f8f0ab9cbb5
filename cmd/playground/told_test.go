package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
)

// told is a pod of a job at one moment, with the values that it must have by then. The requirements are repeated here in Go, so that a
// wrong plugin is not compared with itself.
type told struct {
	witness *witness
	pod     *corev1.Pod
	job     *batchv1alpha1.Job
	version uint64 // version of the store at that moment
	lacks   []string
}

// byPlugin returns the checks for what the built-in plugins must add to a pod.
func (p *told) byPlugin() map[string]func() {
	return map[string]func(){
		"env": p.env, "svc": p.svc, "ssh": p.ssh, "tensorflow": p.tensorflow, "mpi": p.mpi, "pytorch": p.pytorch, "ray": p.ray,
		"hcclrank": p.hcclrank,
	}
}

// check lists what the pod lacks of the values from its job's plugins and volumes.
func (p *told) check() []string {
	for name := range p.job.Spec.Plugins {
		p.byPlugin()[name]()
	}
	p.volumes()
	slices.Sort(p.lacks)
	return p.lacks
}

func (p *told) is(what, got, want string) {
	if got != want {
		p.lacks = append(p.lacks, fmt.Sprintf("%s is %q, want %q", what, got, want))
	}
}

func (p *told) task() string { return p.pod.Annotations[batchv1alpha1.TaskSpecKey] }

func (p *told) index() int {
	n, err := strconv.Atoi(p.pod.Annotations[batchv1alpha1.TaskIndex])
	if err != nil {
		p.lacks = append(p.lacks, "a number within its task")
	}
	return n
}

// replicas returns the number of pods of a task, or 0 if the task does not exist.
func (p *told) replicas(task string) int {
	for i := range p.job.Spec.Tasks {
		if p.job.Spec.Tasks[i].Name == task {
			return int(p.job.Spec.Tasks[i].Replicas)
		}
	}
	return 0
}

// first returns the first of these tasks that the job has.
func (p *told) first(tasks ...string) string {
	return tasks[max(0, slices.IndexFunc(tasks, func(task string) bool { return p.replicas(task) > 0 }))]
}

func (p *told) hosts(task string) (out []string) {
	for i := range p.replicas(task) {
		out = append(out, fmt.Sprintf("%s-%s-%d.%s", p.job.Name, task, i, p.job.Name))
	}
	return out
}

// there returns an object of the job as it was at that moment, or nil if it is missing.
func (p *told) there(kind, name string) client.Object {
	var found client.Object
	for _, at := range p.witness.Versions(kind, name) {
		if at.version > p.version {
			break
		}
		if found = at.beside; at.deleted {
			found = nil
		}
	}
	if found == nil || kind != "PersistentVolumeClaim" && !metav1.IsControlledBy(found, p.job) {
		p.lacks = append(p.lacks, fmt.Sprintf("its %s %s is not there", kind, name))
		return nil
	}
	return found
}

// variable returns the value that a kubelet would give to a container at that moment.
func (p *told) variable(c *corev1.Container, name string) string {
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return ""
	}
	from := c.Env[i].ValueFrom
	if from == nil || from.ConfigMapKeyRef == nil {
		return c.Env[i].Value
	}
	if m, ok := p.there("ConfigMap", from.ConfigMapKeyRef.Name).(*corev1.ConfigMap); ok {
		return m.Data[from.ConfigMapKeyRef.Key]
	}
	return ""
}

// main calls check for the containers that do the work. all also includes the init containers.
func (p *told) main(check func(c *corev1.Container)) {
	for i := range p.pod.Spec.Containers {
		check(&p.pod.Spec.Containers[i])
	}
}

func (p *told) all(check func(c *corev1.Container)) {
	for i := range p.pod.Spec.InitContainers {
		check(&p.pod.Spec.InitContainers[i])
	}
	p.main(check)
}

// says checks a variable of a container.
func (p *told) says(c *corev1.Container, name, want string) {
	p.is(name+" of container "+c.Name, p.variable(c, name), want)
}

// mounted returns the volume that a container mounts at a path.
func (p *told) mounted(c *corev1.Container, path string) corev1.Volume {
	for _, m := range c.VolumeMounts {
		for _, v := range p.pod.Spec.Volumes {
			if m.MountPath == path && m.Name == v.Name {
				return v
			}
		}
	}
	p.lacks = append(p.lacks, fmt.Sprintf("container %s has nothing at %s", c.Name, path))
	return corev1.Volume{}
}

func (p *told) port(c *corev1.Container, name string, number int32) {
	if !slices.ContainsFunc(c.Ports, func(o corev1.ContainerPort) bool { return o.Name == name && o.ContainerPort == number }) {
		p.lacks = append(p.lacks, fmt.Sprintf("container %s has no port %s, %d", c.Name, name, number))
	}
}

func (p *told) env() {
	p.all(func(c *corev1.Container) {
		p.says(c, "VC_TASK_INDEX", strconv.Itoa(p.index()))
		p.says(c, "VK_TASK_INDEX", strconv.Itoa(p.index()))
	})
}

func (p *told) svc() {
	p.is("its host name", p.pod.Spec.Hostname+"."+p.pod.Spec.Subdomain, p.hosts(p.task())[p.index()])
	p.there("NetworkPolicy", p.job.Name)
	if s, ok := p.there("Service", p.job.Name).(*corev1.Service); ok {
		p.is("whom its Service selects", s.Spec.Selector[batchv1alpha1.JobNameKey]+s.Spec.ClusterIP, p.job.Name+corev1.ClusterIPNone)
	}
	p.all(func(c *corev1.Container) {
		for i := range p.job.Spec.Tasks {
			task, word := p.job.Spec.Tasks[i].Name, "VC_"+strings.ToUpper(p.job.Spec.Tasks[i].Name)
			p.says(c, word+"_HOSTS", strings.Join(p.hosts(task), ","))
			p.says(c, word+"_NUM", strconv.Itoa(p.replicas(task)))
		}
		if from := p.mounted(c, "/etc/volcano").ConfigMap; from != nil {
			p.is("what it has at /etc/volcano", from.Name, p.job.Name+"-svc")
		}
	})
}

func (p *told) ssh() {
	p.all(func(c *corev1.Container) {
		if from := p.mounted(c, "/root/.ssh").Secret; from != nil {
			p.is("what it has at /root/.ssh", from.SecretName, p.job.Name+"-ssh")
		}
	})
	if s, ok := p.there("Secret", p.job.Name+"-ssh").(*corev1.Secret); ok {
		p.is("the form of its key", strings.SplitAfter(string(s.Data["id_rsa"]), "\n")[0], "-----BEGIN RSA PRIVATE KEY-----\n")
		p.is("who may log in", string(s.Data["authorized_keys"]), cmp.Or(string(s.Data["id_rsa.pub"]), "somebody"))
	}
}

func (p *told) tensorflow() {
	cluster := map[string][]string{}
	for _, role := range []string{"ps", "worker", "chief", "evaluator"} {
		for _, host := range p.hosts(role) {
			cluster[role] = append(cluster[role], host+":2222")
		}
	}
	p.main(func(c *corev1.Container) {
		text := p.variable(c, "TF_CONFIG")
		if cluster[p.task()] == nil {
			p.is("TF_CONFIG of a task without a role", text, "")
			return
		}
		var got struct {
			Cluster map[string][]string
			Task    struct {
				Type  string
				Index int
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			p.lacks = append(p.lacks, fmt.Sprintf("TF_CONFIG of container %s is %q: %v", c.Name, text, err))
		}
		p.is("its role", fmt.Sprint(got.Task), fmt.Sprintf("{%s %d}", p.task(), p.index()))
		if !reflect.DeepEqual(got.Cluster, cluster) {
			p.is("its cluster", fmt.Sprint(got.Cluster), fmt.Sprint(cluster))
		}
	})
}

func (p *told) mpi() {
	p.all(func(c *corev1.Container) {
		p.port(c, "mpijob-port", 22)
		if p.task() == "master" {
			p.says(c, "MPI_HOST", strings.Join(p.hosts("worker"), ","))
		}
	})
}

// rank returns the pod's rank among masters and workers, with the masters first.
func (p *told) rank() string {
	if p.task() == "master" {
		return strconv.Itoa(p.index())
	}
	return strconv.Itoa(p.replicas("master") + p.index())
}

func (p *told) pytorch() {
	p.main(func(c *corev1.Container) {
		p.port(c, "pytorchjob-port", 23456)
		p.says(c, "MASTER_ADDR", p.hosts("master")[0])
		p.says(c, "MASTER_PORT", "23456")
		p.says(c, "WORLD_SIZE", strconv.Itoa(p.replicas("master")+p.replicas("worker")))
		p.says(c, "RANK", p.rank())
	})
}

func (p *told) ray() {
	p.there("Service", p.job.Name+"-head-svc")
	head, command := p.first("head", "master"), strings.Join(p.pod.Spec.Containers[0].Command, " ")
	want := "sh -c ray start --block --address=" + p.hosts(head)[0] + ":6379"
	if p.task() == head {
		want = "sh -c ray start --head --block --dashboard-host=0.0.0.0 --port=6379 --dashboard-port=8265 --ray-client-server-port=10001"
	}
	p.is("its command", command, want)
}

func (p *told) hcclrank() { p.is("its rank", p.pod.Annotations["hccl/rankIndex"], p.rank()) }

func (p *told) volumes() {
	for _, v := range p.job.Spec.Volumes {
		p.there("PersistentVolumeClaim", v.VolumeClaimName)
		p.main(func(c *corev1.Container) {
			if from := p.mounted(c, v.MountPath).PersistentVolumeClaim; from != nil {
				p.is("its claim at "+v.MountPath, from.ClaimName, v.VolumeClaimName)
			}
		})
	}
}
