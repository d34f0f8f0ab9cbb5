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

// maxNodeGPUs bounds what an annotation may claim, so that a typing error does not fill the memory.
const maxNodeGPUs = 1024

// GPU is one device of a node.
type GPU struct {
	Index      int
	Model      string
	Capacity   int64 // thousandths of a device: 1000
	Free       int64 // thousandths
	Memory     int64 // bytes, 0 where unknown
	MemoryFree int64
	TaskCount  int
	// UUID and Mode are "" where the node does not tell. Sharers is how many tasks may share it; 0: nobody says.
	UUID, Mode string
	Sharers    int
	Unhealthy  bool
	// Unlisted is true if the node does not list GPUResource: no device plugin gives the device to a pod whose containers request that.
	Unlisted bool
}

// Devices is what a task wants of devices, or has.
type Devices struct {
	// GPUKind is how it asks: a word of engine/cards, or "" for whole devices of GPUResource and for our annotations.
	GPUKind    string
	GPUCount   int64
	GPUMilli   int64 // thousandths of each device
	GPUMemory  int64 // bytes of each device
	GPUPercent int64 // of the memory of each device, in place of GPUMemory; 0: none
	GPUTag     string
	GPUModels  []string
}

// offerDevices adds to what a node offers the devices that its object does not list, and the memory of its devices. A pod that asks for
// devices by annotations counts in these resources, so that the limits of queues apply to it. Broken devices are not offered.
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

// readNodeGPUs fills in how many devices a node has, and what it tells of each.
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

// addCard adds a mistake of engine/cards, in the field that a key stands for.
func (m *mistakes) addCard(err error, field func(key string) string) {
	if x, ok := errors.AsType[*cards.Mistake](err); ok {
		m.add(field(x.Key), "%s", x.Text)
	}
}

// setContainers sets what the containers of a task request. The request of the task is the same until it asks for devices by annotations.
func (t *Task) setContainers(d *Dims, r Resources) {
	t.containers, t.Request = r, r
	dim, ok := d.Find(GPUResource)
	t.RequestsGPUs = ok && r.Get(dim) > 0
}

// countDevices sets what a task requests: what its containers request, and the devices that it wants by annotations, as parts of whole
// devices. A share of the memory alone counts as memory.
func (t *Task) countDevices(d *Dims) {
	t.Request = t.containers
	if t.GPUCount == 0 || t.GPUKind != "" || t.RequestsGPUs {
		return
	}
	t.Request = t.containers.Clone() // the template's
	if t.GPUMilli > 0 {
		dim := d.Intern(GPUResource)
		t.Request.Set(dim, float64(t.GPUCount)*float64(t.GPUMilli)*d.Unit(dim)/WholeGPU)
	}
	if t.GPUMemory > 0 {
		t.Request.Set(d.Intern(GPUMemoryResource), min(float64(t.GPUCount)*float64(t.GPUMemory), Most))
	}
}

// asksForDevices reports whether one of our annotations asks for devices.
func asksForDevices(annotations map[string]string) bool {
	for _, key := range [...]string{GPUCountAnnotation, GPUMilliAnnotation, GPUMemoryAnnotation} {
		if _, ok := annotations[key]; ok {
			return true
		}
	}
	return false
}

// DeviceRequests returns what a pod counts for because its annotations ask for devices, in addition to what its containers request; nil if
// they do not. The scheduler counts the same amounts. It ignores the annotations of a foreign pod, which another scheduler places. It does
// not read a pod with mistakes in them.
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

// NodeOffers returns what a node offers to pods: its allocatable resources, and the devices that these do not list.
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

// readTaskGPUs fills in which devices a task wants, from its requests and its pod's annotations, and
// which it holds. Where something is wrong it wants none.
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

// wantGPUs says which devices a task wants, or has: so many, and so much of each.
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

// share is what annotations say of devices. Each of count and milli has whether it was said.
type share struct {
	count, milli, memory int64
	hasCount, hasMilli   bool
}

// readShare reads the annotations that ask for devices. Those of another scheduler's pod do not count, because no scheduler gave the pod a
// device.
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
		s.milli = WholeGPU // else a share of the memory alone
	}
	return s
}

// gpuWish is how many devices the task wants, and of each how many thousandths and how many bytes.
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

// cardWish is what of that a task asks for in Volcano's words; others says that it asks for devices in others as well.
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

// readDevices reads which devices a task with a node holds, in ascending order; nil where nobody wrote it.
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

// newGPUs makes the devices of a node, all free.
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

// hold counts what a task takes of a device, sign 1 to hold and -1 to let go.
func (g *GPU) hold(t *Task, sign int64) {
	g.Free -= sign * t.GPUMilli
	g.MemoryFree -= sign * t.DeviceMemory(g)
	g.TaskCount += int(sign)
}

// Takes says whether a device has room for a task.
func (g *GPU) Takes(t *Task) bool { return g.MemoryFree >= t.GPUMemory && g.spares(t) }

// barred reports whether no device plugin gives the device to a task whose containers request GPUResource.
func (g *GPU) barred(t *Task) bool { return g.Unlisted && t.RequestsGPUs }

// spares is as Takes, but whose memory is not known has enough.
func (g *GPU) spares(t *Task) bool {
	return !g.barred(t) && g.Free >= t.GPUMilli && g.MemoryFree >= t.DeviceMemory(g) && (g.Sharers == 0 || g.TaskCount < g.Sharers)
}

// holdGPUs counts what a task holds of its devices, sign 1 to hold and -1 to let go. Devices that the node lacks
// are passed over: a pod may say that it holds them, and the node may have lost them.
func holdGPUs(gpus []GPU, t *Task, sign int64) {
	for _, i := range t.GPUs {
		if i >= 0 && i < len(gpus) && !gpus[i].barred(t) {
			gpus[i].hold(t, sign)
		}
	}
}

// GPUsLater appends the devices of a node as they are when all that is being released is gone and what is promised is taken.
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

// DeviceMemory is what a task takes of a device's memory: what it asked for, else all where it takes the
// whole device; 0 where the memory is unknown. A percentage is rounded down, as what is asked for is counted.
func (t *Task) DeviceMemory(g *GPU) int64 {
	switch {
	case t.GPUPercent > 0:
		return g.Memory / cards.Unit * t.GPUPercent / 100 * cards.Unit
	case g.Memory == 0 || t.GPUMemory == 0 && t.GPUMilli >= g.Capacity:
		return g.Memory
	}
	return t.GPUMemory
}

// BindAnnotations is what a binding writes to a pod of the devices and the CPUs that it gives it, for who runs the pod.
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

// ForgetDevices takes away what a binding wrote of devices and CPUs.
func ForgetDevices(annotations map[string]string) {
	delete(annotations, GPUsAnnotation)
	delete(annotations, v1beta1.TopologyDecisionAnnotation)
	cards.Forget(annotations)
}

// guessGPUs finds devices for the tasks on a row that hold some, though nobody wrote down their numbers: those that the task has by UUID
// are where the node lists them; then, in order of their creation, each gets the lowest devices that are free enough, as a kubelet would
// give them. It depends on nothing but who is there now, so the order in which objects arrive does not matter.
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

// hasGPUs has a task hold devices.
func hasGPUs(c *Cluster, t *Task, devices []int) {
	if !slices.Equal(devices, t.GPUs) {
		to := t.spot()
		to.gpus = devices
		c.move(t, to)
	}
}

// numbersOf are the devices that a task has by UUID, in ascending order, each once.
func numbersOf(gpus []GPU, t *Task) (devices []int) {
	for i := range gpus {
		if int64(len(devices)) < t.GPUCount && slices.Contains(t.cards, gpus[i].UUID) {
			devices = append(devices, i)
		}
	}
	return devices
}

// uuidsOf are the UUIDs of some devices; nil where one of them has none.
func uuidsOf(gpus []GPU, devices []int) (uuids []string) {
	for _, i := range devices {
		if i < 0 || i >= len(gpus) || gpus[i].UUID == "" {
			return nil
		}
		uuids = append(uuids, gpus[i].UUID)
	}
	return uuids
}
