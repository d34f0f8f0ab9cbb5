package model

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/celsius-scheduler/celsius/crds/decode"
	"github.com/celsius-scheduler/celsius/crds/scheduling/v1beta1"
	"github.com/celsius-scheduler/celsius/engine/cards"
)

// maxNodeGPUs limits the number in an annotation, so that a typing error does not use all memory.
const maxNodeGPUs = 1024

// GPU is one device of a node.
type GPU struct {
	Index      int
	Model      string
	Capacity   int64 // thousandths of a device: 1000
	Free       int64 // thousandths
	Memory     int64 // bytes; 0 if unknown
	MemoryFree int64
	TaskCount  int
	// UUID and Mode are "" if the node does not state them. Sharers is how many tasks may share the device; 0: not stated.
	UUID, Mode string
	Sharers    int
	Unhealthy  bool
	// Unlisted is true if the node does not list GPUResource: no device plugin gives the device to a pod whose containers request that.
	Unlisted bool
}

// Devices describes the devices that a task requests or holds.
type Devices struct {
	// GPUKind is the form of the request: a constant of engine/cards, or "" for whole devices of GPUResource and for our annotations.
	GPUKind    string
	GPUCount   int64
	GPUMilli   int64 // thousandths of each device
	GPUMemory  int64 // bytes of each device
	GPUPercent int64 // percentage of the memory of each device, instead of GPUMemory; 0: none
	GPUTag     string
	GPUModels  []string
}

// offerDevices adds the devices that the node's object does not list, and the memory of its devices, to what the node offers. A pod that
// requests devices by annotations counts in these resources, so that limits of queues apply to it. Broken devices are not offered.
func (n *Node) offerDevices(d *Dims, allocatable Resources) Resources {
	if n.gpuCount == 0 {
		return allocatable
	}
	count, memory := float64(n.gpuCount), float64(n.gpuCount)*float64(n.gpuMemory)
	if len(n.cards) > 0 {
		count, memory = 0, 0
		for i := range n.cards {
			if c := &n.cards[i]; c.Healthy {
				count, memory = count+1, memory+float64(c.Memory)
			}
		}
	}
	if dim := d.Intern(GPUResource); allocatable.Get(dim) <= 0 {
		n.unlistedGPUs = true
		allocatable.Set(dim, count*d.Unit(dim))
	}
	if memory > 0 {
		if dim := d.Intern(GPUMemoryResource); !allocatable.Has(dim) {
			allocatable.Set(dim, min(memory, Most-1))
		}
	}
	return allocatable
}

// readNodeGPUs reads how many devices a node has, and the description of each.
func (n *Node) readNodeGPUs(d *Dims, o *corev1.Node, allocatable Resources, m *mistakes) {
	var err error
	if n.cards, err = cards.Of(o); err != nil {
		m.addCard(err, annotation)
	}
	if len(n.cards) > 0 {
		n.gpuCount = len(n.cards)
		return
	}
	n.gpuMemory = min(readQuantity(o.Annotations, GPUMemoryAnnotation, m), Most-1)
	if dim, ok := d.Find(GPUResource); ok && allocatable.Get(dim) > 0 {
		n.gpuCount = int(min(allocatable[dim]/d.Unit(dim), maxNodeGPUs))
		return
	}
	count, _ := readInt(o.Annotations, NodeGPUsAnnotation, intRange{0, maxNodeGPUs}, m)
	n.gpuCount = int(count)
}

// addCard adds a mistake of engine/cards. field returns the field of a key.
func (m *mistakes) addCard(err error, field func(key string) string) {
	if x, ok := errors.AsType[*cards.Mistake](err); ok {
		m.add(field(x.Key), "%s", x.Text)
	}
}

// setContainers sets what the containers of a task request. The request of the task is the same unless it requests devices by annotations.
func (t *Task) setContainers(d *Dims, r Resources) {
	t.containers, t.Request = r, r
	dim, ok := d.Find(GPUResource)
	t.RequestsGPUs = ok && r.Get(dim) > 0
}

// countDevices sets the request of a task: the requests of its containers, and the devices that its annotations request, as parts of whole
// devices. A request for only a part of the memory counts as memory.
func (t *Task) countDevices(d *Dims) {
	t.Request = t.containers
	if t.GPUCount == 0 || t.GPUKind != "" || t.RequestsGPUs {
		return
	}
	t.Request = t.containers.Clone() // do not change the template's
	if t.GPUMilli > 0 {
		dim := d.Intern(GPUResource)
		t.Request.Set(dim, float64(t.GPUCount)*float64(t.GPUMilli)*d.Unit(dim)/WholeGPU)
	}
	if t.GPUMemory > 0 {
		t.Request.Set(d.Intern(GPUMemoryResource), min(float64(t.GPUCount)*float64(t.GPUMemory), Most))
	}
}

// asksForDevices reports whether one of our annotations requests devices.
func asksForDevices(annotations map[string]string) bool {
	for _, key := range [...]string{GPUCountAnnotation, GPUMilliAnnotation, GPUMemoryAnnotation} {
		if _, ok := annotations[key]; ok {
			return true
		}
	}
	return false
}

// DeviceRequests returns the devices that a pod's annotations request, in addition to the requests of its containers; nil if they request
// none. The scheduler counts the same amounts. It ignores the annotations of a foreign pod, which another scheduler places. It also ignores
// a pod with mistakes in them.
func DeviceRequests(o *corev1.Pod, foreign bool) corev1.ResourceList {
	if foreign || !asksForDevices(o.Annotations) && o.Annotations[RecordAnnotation] == "" {
		return nil
	}
	d, m := NewDims(), &mistakes{}
	t := &Task{UID: string(o.UID), Annotations: o.Annotations, NodeName: o.Spec.NodeName, Object: o}
	readRequests(d, t, o, m)
	readTaskGPUs(d, t, m)
	t.readDecided(d, nil, m)
	var out corev1.ResourceList
	for dim := range t.Request {
		if t.Request.Has(dim) && !t.containers.Has(dim) {
			if out == nil {
				out = corev1.ResourceList{}
			}
			out[corev1.ResourceName(d.Name(dim))] = *d.Quantity(dim, t.Request[dim])
		}
	}
	return out
}

// NodeOffers returns what a node offers to pods: its allocatable resources, and the devices that they do not list.
func NodeOffers(o *corev1.Node) corev1.ResourceList {
	d, n, out := NewDims(), &Node{}, o.Status.Allocatable
	if len(out) == 0 {
		out = o.Status.Capacity
	}
	offers := d.Offers(out)
	n.readNodeGPUs(d, o, offers, &mistakes{})
	offers = n.offerDevices(d, offers)
	shared := true
	for _, name := range [...]corev1.ResourceName{GPUResource, GPUMemoryResource} {
		dim, ok := d.Find(string(name))
		if listed, is := out[name]; !ok || offers.Get(dim) <= 0 || is && listed.Sign() > 0 {
			continue
		}
		if shared {
			out, shared = maps.Clone(out), false
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = *d.Quantity(dim, offers[dim])
	}
	return out
}

// readTaskGPUs reads which devices a task requests, from its requests and its pod's annotations, and which it holds. If one of them has a
// mistake, the task requests no devices.
func readTaskGPUs(d *Dims, t *Task, m *mistakes) {
	errs := len(m.errs)
	wish := gpuWish(d, t, m)
	_, uuids := cards.Held(t.Annotations, wish.GPUKind)
	var held []int
	if len(uuids) == 0 && (wish.GPUCount > 0 || !t.Foreign) {
		held = readDevices(t, &wish, m)
	}
	if len(m.errs) > errs || wish.GPUCount == 0 {
		return
	}
	if t.NodeName != "" {
		t.cards = uuids
	}
	t.wantGPUs(d, wish)
	t.GPUModels = readModels(t.Annotations)
	t.GPUs, t.knownGPUs = held, held != nil
}

// wantGPUs sets the devices that a task requests or has: how many, and how much of each.
func (t *Task) wantGPUs(d *Dims, wish Devices) {
	wish.GPUModels, wish.GPUTag = t.GPUModels, ""
	switch {
	case wish.GPUCount == 1 && wish.GPUMilli < WholeGPU:
		wish.GPUTag = "share"
	case wish.GPUCount > 0:
		wish.GPUTag = strconv.FormatInt(wish.GPUCount, 10) + "-gpu"
	}
	t.Devices = wish
	t.countDevices(d)
}

// share contains the annotations about devices. hasCount and hasMilli report whether count and milli were stated.
type share struct {
	count, milli, memory int64
	hasCount, hasMilli   bool
}

// readShare reads the annotations that request devices. It ignores those of a foreign pod, because no scheduler gave that pod a device.
func readShare(t *Task, m *mistakes) (s share) {
	if !t.Foreign && asksForDevices(t.Annotations) {
		s.count, s.hasCount = readInt(t.Annotations, GPUCountAnnotation, intRange{0, maxNodeGPUs}, m)
		s.milli, s.hasMilli = readInt(t.Annotations, GPUMilliAnnotation, intRange{1, WholeGPU}, m)
		s.memory = readQuantity(t.Annotations, GPUMemoryAnnotation, m)
	}
	if !s.hasCount && (s.hasMilli || s.memory > 0) {
		s.count = 1
	}
	if !s.hasMilli && s.memory == 0 {
		s.milli = WholeGPU // otherwise the task requests only a part of the memory
	}
	return s
}

// gpuWish returns how many devices the task requests, and how many thousandths and bytes of each.
func gpuWish(d *Dims, t *Task, m *mistakes) Devices {
	s := readShare(t, m)
	whole := int64(0)
	if dim, ok := d.Find(GPUResource); ok && t.RequestsGPUs {
		whole = int64(math.Ceil(t.containers[dim] / d.Unit(dim)))
	}
	if asked := cardWish(t, whole > 0 || s.count > 0, m); asked.GPUCount > 0 {
		return asked
	}
	if whole > 0 {
		if s.hasCount && s.count != whole {
			m.add(annotation(GPUCountAnnotation), "is %d, but the containers request %s: %d", s.count, GPUResource, whole)
		}
		if s.hasMilli && s.milli != WholeGPU {
			m.add(annotation(GPUMilliAnnotation),
				"is %d, but the containers request whole devices (%s: %d); leave one of both away", s.milli, GPUResource, whole)
		}
		s.count, s.milli = whole, WholeGPU
	}
	return Devices{GPUCount: s.count, GPUMilli: s.milli, GPUMemory: s.memory}
}

// cardWish returns what a task requests in Volcano's form. others states that the task also requests devices in another form.
func cardWish(t *Task, others bool, m *mistakes) Devices {
	ask, err := cards.Asked(t.Object)
	if err != nil {
		m.addCard(err, func(key string) string { return "spec.containers[].resources.limits[" + key + "]" })
		return Devices{}
	}
	if ask.Count > 0 && others {
		m.add("spec.containers[].resources.limits", "cards are asked for in Volcano's words (%s), and in others as well; leave one of both away",
			ask.Resource())
	}
	return Devices{GPUKind: ask.Kind, GPUCount: ask.Count, GPUMilli: ask.Milli, GPUMemory: ask.Memory, GPUPercent: ask.Percent}
}

func readModels(annotations map[string]string) []string {
	var models []string
	for model := range strings.SplitSeq(annotations[GPUModelsAnnotation], "|") {
		if model = strings.TrimSpace(model); model != "" {
			models = append(models, model)
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// readDevices reads which devices a task with a node holds, in ascending order; nil if no annotation states them.
func readDevices(t *Task, wish *Devices, m *mistakes) []int {
	key := GPUsAnnotation
	text, ok := t.Annotations[key]
	if !ok {
		key = cards.IndexAnnotation
		text, _ = cards.Held(t.Annotations, wish.GPUKind)
	}
	if text == "" && !ok || t.NodeName == "" {
		return nil
	}
	devices := []int{}
	for part := range strings.SplitSeq(text, ",") {
		i, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || i < 0 || i >= maxNodeGPUs {
			m.add(annotation(key), "%q is no list of device numbers such as 0,1", text)
			return nil
		}
		devices = append(devices, i)
	}
	slices.Sort(devices)
	if n := len(slices.Compact(slices.Clone(devices))); n != len(devices) || int64(n) != wish.GPUCount {
		m.add(annotation(key), "%q names %d different devices, but the pod wants %d", text, n, wish.GPUCount)
		return nil
	}
	return devices
}

type intRange struct{ least, most int64 }

func readInt(annotations map[string]string, key string, within intRange, m *mistakes) (v int64, ok bool) {
	text, ok := annotations[key]
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || v < within.least || v > within.most {
		m.add(annotation(key), "%q is no whole number from %d to %d", text, within.least, within.most)
		return 0, false
	}
	return v, true
}

func readQuantity(annotations map[string]string, key string, m *mistakes) int64 {
	text, ok := annotations[key]
	if !ok {
		return 0
	}
	q, err := decode.Quantity(strings.TrimSpace(text))
	if err != nil || q.Sign() < 0 {
		m.add(annotation(key), "%q is no quantity such as 16Gi", text)
		return 0
	}
	return Bytes(q)
}

// newGPUs returns the devices of a node, all free.
func newGPUs(n *Node) []GPU {
	if n.gpuCount == 0 {
		return nil
	}
	gpus := make([]GPU, n.gpuCount)
	for i := range gpus {
		g := &gpus[i]
		*g = GPU{Index: i, Model: n.GPUModel, Capacity: WholeGPU, Free: WholeGPU, Memory: n.gpuMemory, Unlisted: n.unlistedGPUs}
		if len(n.cards) > 0 {
			c := &n.cards[i]
			g.Model, g.Memory = cmp.Or(c.Type, n.GPUModel), c.Memory
			g.UUID, g.Mode, g.Sharers, g.Unhealthy = c.UUID, c.Mode, c.Sharers, !c.Healthy
		}
		g.MemoryFree = g.Memory
	}
	return gpus
}

// hold counts the part of a device that a task uses: sign 1 to hold it, -1 to release it.
func (g *GPU) hold(t *Task, sign int64) {
	g.Free -= sign * t.GPUMilli
	g.MemoryFree -= sign * t.DeviceMemory(g)
	g.TaskCount += int(sign)
}

// Takes reports whether a device has enough free resources for a task. A device of unknown memory has none for a task that requests memory.
func (g *GPU) Takes(t *Task) bool { return g.MemoryFree >= t.GPUMemory && g.spares(t) }

// barred reports whether no device plugin gives the device to a task whose containers request GPUResource.
func (g *GPU) barred(t *Task) bool { return g.Unlisted && t.RequestsGPUs }

// spares does what Takes does, but a device of unknown memory has enough memory.
func (g *GPU) spares(t *Task) bool {
	return !g.barred(t) && g.Free >= t.GPUMilli && g.MemoryFree >= t.DeviceMemory(g) && (g.Sharers == 0 || g.TaskCount < g.Sharers)
}

// holdGPUs counts the devices that a task holds: sign 1 to hold them, -1 to release them. It ignores devices that the node does not have: a
// pod may claim to hold them, or the node may have lost them.
func holdGPUs(gpus []GPU, t *Task, sign int64) {
	for _, i := range t.GPUs {
		if i >= 0 && i < len(gpus) && !gpus[i].barred(t) {
			gpus[i].hold(t, sign)
		}
	}
}

// GPUsLater appends the devices of a node as they will be after all releasing tasks are gone and all promised tasks are placed.
func GPUsLater(n *Nodes, row int32, to []GPU) []GPU {
	to = append(to, n.GPUs[row]...)
	if !n.Moves(row) {
		return to
	}
	for _, t := range n.Tasks[row] {
		switch t.Status {
		case Releasing:
			holdGPUs(to, t, -1)
		case Pipelined:
			holdGPUs(to, t, 1)
		default:
		}
	}
	return to
}

// DeviceMemory returns how much of a device's memory a task uses: what it requests, or all if it uses the whole device; 0 if the memory is
// unknown. A percentage is rounded down, as requests are.
func (t *Task) DeviceMemory(g *GPU) int64 {
	switch {
	case t.GPUPercent > 0:
		return g.Memory / cards.Unit * t.GPUPercent / 100 * cards.Unit
	case g.Memory == 0 || t.GPUMemory == 0 && t.GPUMilli >= g.Capacity:
		return g.Memory
	}
	return t.GPUMemory
}

// BindAnnotations returns what a binding writes to a pod about its devices and CPUs, for the program that runs the pod.
func BindAnnotations(n *Nodes, t *Task, b *Bind, now time.Time) map[string]string {
	row, ok := n.Index[b.Node]
	if !ok {
		return nil
	}
	out := deviceAnnotations(n.GPUs[row], t, b, now)
	if text := decision(n, row, b.CPUs); text != "" {
		if out == nil {
			out = map[string]string{}
		}
		out[v1beta1.TopologyDecisionAnnotation] = text
	}
	return out
}

func deviceAnnotations(gpus []GPU, t *Task, b *Bind, now time.Time) map[string]string {
	if len(b.GPUs) == 0 {
		return nil
	}
	var chosen []cards.Chosen
	numbers := make([]string, len(b.GPUs))
	for k, i := range b.GPUs {
		numbers[k] = strconv.Itoa(i)
		if i < len(gpus) {
			g := &gpus[i]
			chosen = append(chosen, cards.Chosen{Number: i, UUID: g.UUID, Milli: t.GPUMilli, Memory: t.DeviceMemory(g)})
		}
	}
	out := cards.Written(t.Object, t.GPUKind, b.Node, chosen, now)
	if out == nil {
		out = map[string]string{}
	}
	out[GPUsAnnotation] = strings.Join(numbers, ",")
	return out
}

// ForgetDevices removes what a binding wrote about devices and CPUs.
func ForgetDevices(annotations map[string]string) {
	delete(annotations, GPUsAnnotation)
	delete(annotations, v1beta1.TopologyDecisionAnnotation)
	cards.Forget(annotations)
}

// guessGPUs finds devices for the tasks on a row whose device numbers are not stated. A task that has UUIDs gets the devices that the node
// lists under them. Then each other task, in order of creation, gets the lowest devices that are free enough, as a kubelet would do. The
// result depends only on the present tasks, not on the order in which objects arrive.
func (c *Cluster) guessGPUs(row int32) {
	var named, unknown []*Task
	free := newGPUs(c.Nodes.Rows[row])
	for _, t := range c.Nodes.Tasks[row] {
		switch {
		case t.GPUCount == 0 || t.Status == Pipelined:
		case t.knownGPUs:
			holdGPUs(free, t, 1)
		case len(t.cards) > 0 && t.decided():
			named = append(named, t)
		default:
			unknown = append(unknown, t)
		}
	}
	for _, t := range named {
		hasGPUs(c, t, numbersOf(free, t))
		holdGPUs(free, t, 1)
	}
	slices.SortStableFunc(unknown, func(a, b *Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Key, b.Key))
	})
	for _, t := range unknown {
		devices := numbersOf(free, t)
		for i := range free {
			if int64(len(devices)) < t.GPUCount && free[i].spares(t) && !slices.Contains(devices, i) {
				devices = append(devices, i)
			}
		}
		slices.Sort(devices)
		hasGPUs(c, t, devices)
		holdGPUs(free, t, 1)
	}
}

// hasGPUs sets the devices that a task holds.
func hasGPUs(c *Cluster, t *Task, devices []int) {
	if !slices.Equal(devices, t.GPUs) {
		to := t.spot()
		to.gpus = devices
		c.move(t, to)
	}
}

// numbersOf returns the numbers of the devices that a task has by UUID, in ascending order, without duplicates.
func numbersOf(gpus []GPU, t *Task) (devices []int) {
	for i := range gpus {
		if int64(len(devices)) < t.GPUCount && slices.Contains(t.cards, gpus[i].UUID) {
			devices = append(devices, i)
		}
	}
	return devices
}

// uuidsOf returns the UUIDs of some devices; nil if one of them has none.
func uuidsOf(gpus []GPU, devices []int) (uuids []string) {
	for _, i := range devices {
		if i < 0 || i >= len(gpus) || gpus[i].UUID == "" {
			return nil
		}
		uuids = append(uuids, gpus[i].UUID)
	}
	return uuids
}
