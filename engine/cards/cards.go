// Package cards reads and writes Volcano's notation for GPU cards. Volcano's device plugins and pods use it for the cards of a node and the
// requests of a pod. A binding writes it to a pod, so that the device plugin of the node gives the pod the chosen cards.
//
//	Of      node's annotation and capacity -> its cards
//	Asked   pod -> its request for cards
//	Held    pod on a node -> the cards that a binding gave it
//	Written chosen cards -> annotations
package cards

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources in the limits of containers.
const (
	// MemoryResource is a part of one card's memory, NumberResource a number of whole cards. A node's capacity contains the sums over its
	// cards.
	MemoryResource = "volcano.sh/gpu-memory"
	NumberResource = "volcano.sh/gpu-number"
	// ShareNumber is the number of cards of which a container requests a share; 1 if only ShareMemory is given.
	ShareNumber = "volcano.sh/vgpu-number"
	ShareMemory = "volcano.sh/vgpu-memory"
	// SharePercent is the share of a card's memory in percent. It takes precedence over ShareMemory. No node offers it as a resource.
	SharePercent = "volcano.sh/vgpu-memory-percentage"
	ShareCores   = "volcano.sh/vgpu-cores"
)

// Annotations of nodes.
const (
	// UnhealthyAnnotation lists the cards, counted from 0, that must not be used: "0,2".
	UnhealthyAnnotation = "volcano.sh/gpu-unhealthy-ids"
	// RegisterAnnotation lists the cards that pods can share.
	RegisterAnnotation = "volcano.sh/node-vgpu-register"
	// HandshakeAnnotation states that the cards of RegisterAnnotation are gone, if it begins with handshakeGone.
	HandshakeAnnotation = "volcano.sh/node-vgpu-handshake"
	handshakeGone       = "Deleted"
)

// Annotations of pods that a binding writes.
const (
	IndexAnnotation      = "volcano.sh/gpu-index"
	predicateAnnotation  = "volcano.sh/predicate-time"
	shareIDsAnnotation   = "volcano.sh/vgpu-ids-new"
	allocateAnnotation   = "volcano.sh/devices-to-allocate"
	shareNodeAnnotation  = "volcano.sh/vgpu-node"
	shareTimeAnnotation  = "volcano.sh/vgpu-time"
	bindTimeAnnotation   = "volcano.sh/bind-time"
	bindPhaseAnnotation  = "volcano.sh/bind-phase"
	phaseOfWhatWasChosen = "allocating"
)

// Forms of requests for cards.
const (
	Memory = "memory" // MemoryResource
	Number = "number" // NumberResource
	Share  = "vgpu"   // ShareNumber and similar resources
)

// Unit is the memory of one unit of MemoryResource or ShareMemory, in bytes.
const Unit = 1 << 20

// wholeCard is a card in thousandths; fullCores is the value of all its cores.
const (
	wholeCard = 1000
	fullCores = 100
)

// most limits what is read of a quantity. No card has that much memory.
const most = 1 << 32

// mostCards limits the number of cards in an annotation.
const mostCards = 1024

// Card is a card of a node.
type Card struct {
	// UUID, Type and Mode are "" if the node does not state them.
	UUID, Type, Mode string
	// Sharers is the number of pods that may share it; 0: not stated.
	Sharers int
	Memory  int64 // bytes
	Healthy bool
}

// Of returns the cards that a node describes in Volcano's notation; nil if it describes none.
func Of(o *corev1.Node) ([]Card, error) {
	if text := o.Annotations[RegisterAnnotation]; text != "" && !strings.HasPrefix(o.Annotations[HandshakeAnnotation], handshakeGone) {
		return registered(text)
	}
	list := o.Status.Capacity
	if len(list) == 0 {
		list = o.Status.Allocatable
	}
	number := min(whole(list[NumberResource]), mostCards)
	if number <= 0 {
		return nil, nil
	}
	out := slices.Repeat([]Card{{Memory: whole(list[MemoryResource]) / number * Unit, Healthy: true}}, int(number))
	for part := range strings.SplitSeq(o.Annotations[UnhealthyAnnotation], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 {
			return out, &Mistake{UnhealthyAnnotation, fmt.Sprintf("%q is no card's number: write them as 0,2", part)}
		}
		if i < len(out) {
			out[i].Healthy = false
		}
	}
	return out, nil
}

// Mistake is a mistake in an annotation or a limit.
type Mistake struct{ Key, Text string }

func (m *Mistake) Error() string { return m.Text }

// registered reads "uuid,sharers,memory,type,health,mode" for each card, with ":" at its end. The mode may be missing.
func registered(text string) (out []Card, err error) {
	for part := range strings.SplitSeq(text, ":") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		words := strings.Split(part, ",")
		wrong := &Mistake{RegisterAnnotation, fmt.Sprintf("%q is no card: write UUID,SHARERS,MEMORY,TYPE,HEALTH,MODE", part)}
		if len(words) < 5 || len(out) == mostCards {
			return nil, wrong
		}
		sharers, err1 := strconv.ParseUint(words[1], 10, 16)
		memory, err2 := strconv.ParseUint(words[2], 10, 32)
		healthy, err3 := strconv.ParseBool(words[4])
		if err1 != nil || err2 != nil || err3 != nil || words[0] == "" {
			return nil, wrong
		}
		if slices.ContainsFunc(out, func(c Card) bool { return c.UUID == words[0] }) {
			return nil, &Mistake{RegisterAnnotation, fmt.Sprintf("card %q is listed twice", words[0])}
		}
		c := Card{UUID: words[0], Type: words[3], Sharers: int(sharers), Memory: int64(memory) * Unit, Healthy: healthy}
		if len(words) > 5 {
			c.Mode = words[5]
		}
		out = append(out, c)
	}
	return out, nil
}

// Ask is a pod's request for cards: their number, and of each card the thousandths and bytes, or the percentage of its memory.
type Ask struct {
	Kind                          string
	Count, Milli, Memory, Percent int64
}

// Asked returns a pod's request for cards in Volcano's notation. Containers request shares, but cards are chosen for a whole pod. So its
// containers must request the same of each card. Each container then has cards of its own.
func Asked(o *corev1.Pod) (Ask, error) {
	var asks []Ask
	if n := podLimit(&o.Spec, MemoryResource); n > 0 {
		asks = append(asks, Ask{Kind: Memory, Count: 1, Memory: n * Unit})
	}
	if n := podLimit(&o.Spec, NumberResource); n > 0 {
		asks = append(asks, Ask{Kind: Number, Count: n, Milli: wholeCard})
	}
	share := -1
	for i := range o.Spec.Containers {
		x, ok, err := askedShare(&o.Spec.Containers[i])
		switch {
		case err != nil:
			return Ask{}, err
		case !ok:
		case share < 0:
			share, asks = len(asks), append(asks, x)
		default:
			was := asks[share]
			if was.Memory != x.Memory || was.Percent != x.Percent || was.Milli != x.Milli {
				return Ask{}, &Mistake{ShareNumber, fmt.Sprintf("container %s requests another share of a card than the containers "+
					"before it: shares of one pod must be alike", o.Spec.Containers[i].Name)}
			}
			asks[share].Count += x.Count
		}
	}
	switch {
	case len(asks) > 1:
		text := fmt.Sprintf("is requested in addition to %s: a pod may request cards in one way only", nameOf(asks[0].Kind))
		return Ask{}, &Mistake{nameOf(asks[1].Kind), text}
	case len(asks) == 0:
		return Ask{}, nil
	case asks[0].Count > mostCards:
		return Ask{}, &Mistake{nameOf(asks[0].Kind), fmt.Sprintf("is %d; no node has more than %d cards", asks[0].Count, mostCards)}
	}
	return asks[0], nil
}

// Resource returns the resource by which cards are requested.
func (x Ask) Resource() string { return nameOf(x.Kind) }

// nameOf returns the resource by which a kind of cards is requested.
func nameOf(kind string) string {
	return map[string]string{Memory: MemoryResource, Number: NumberResource, Share: ShareNumber}[kind]
}

// askedShare returns the request of a container.
func askedShare(ctr *corev1.Container) (x Ask, asks bool, err error) {
	count, counted := limit(ctr, ShareNumber)
	memory, measured := limit(ctr, ShareMemory)
	percent, parted := limit(ctr, SharePercent)
	cores, _ := limit(ctr, ShareCores)
	if !counted && !measured {
		return Ask{}, false, nil
	}
	if !counted {
		count = 1
	}
	switch {
	case parted && (percent < 1 || percent > 100):
		return Ask{}, false, &Mistake{SharePercent, fmt.Sprintf("is %d, not from 1 to 100", percent)}
	case cores > fullCores:
		return Ask{}, false, &Mistake{ShareCores, fmt.Sprintf("is %d, not from 0 to 100", cores)}
	}
	x = Ask{Kind: Share, Count: count, Milli: cores * wholeCard / fullCores}
	switch {
	case parted:
		x.Percent = percent
	case memory > 0:
		x.Memory = memory * Unit
	default:
		x.Percent = 100
	}
	return x, count > 0, nil
}

func limit(ctr *corev1.Container, name corev1.ResourceName) (n int64, ok bool) {
	q, ok := ctr.Resources.Limits[name]
	if !ok {
		q, ok = ctr.Resources.Requests[name]
	}
	return whole(q), ok
}

// podLimit returns the sum over the containers of a pod, or the limit of one init container if that is larger.
func podLimit(spec *corev1.PodSpec, name corev1.ResourceName) int64 {
	sum, largest := int64(0), int64(0)
	for i := range spec.Containers {
		n, _ := limit(&spec.Containers[i], name)
		sum += n
	}
	for i := range spec.InitContainers {
		n, _ := limit(&spec.InitContainers[i], name)
		largest = max(largest, n)
	}
	return min(max(sum, largest), most)
}

// whole returns a quantity as a number, 0 if it is negative.
func whole(q resource.Quantity) int64 {
	if math.Abs(q.AsApproximateFloat64()) >= most {
		return most * int64(max(q.Sign(), 0))
	}
	return max(q.Value(), 0)
}

// Held returns the cards in the annotations of a pod: by number, or by UUID.
func Held(annotations map[string]string, kind string) (numbers string, uuids []string) {
	switch kind {
	case Memory, Number:
		return annotations[IndexAnnotation], nil
	case Share:
		for container := range strings.SplitSeq(annotations[shareIDsAnnotation], ";") {
			for card := range strings.SplitSeq(container, ":") {
				if uuid, _, ok := strings.Cut(card, ","); ok {
					uuids = append(uuids, uuid)
				}
			}
		}
	}
	return "", uuids
}

// Chosen is a card that was chosen for a pod, and the part of it that the pod uses.
type Chosen struct {
	Number        int
	UUID          string
	Milli, Memory int64
}

// Written returns the annotations that tell a device plugin the chosen cards; nil if no device plugin reads any.
func Written(o *corev1.Pod, kind, node string, chosen []Chosen, now time.Time) map[string]string {
	switch kind {
	case Memory, Number:
		numbers := make([]string, len(chosen))
		for i, c := range chosen {
			numbers[i] = strconv.Itoa(c.Number)
		}
		return map[string]string{IndexAnnotation: strings.Join(numbers, ","), predicateAnnotation: strconv.FormatInt(now.UnixNano(), 10)}
	case Share:
		ids, at := containersOf(o, chosen), strconv.FormatInt(now.Unix(), 10)
		return map[string]string{
			shareIDsAnnotation: ids, allocateAnnotation: ids, shareNodeAnnotation: node, shareTimeAnnotation: at, bindTimeAnnotation: at,
			bindPhaseAnnotation: phaseOfWhatWasChosen,
		}
	}
	return nil
}

// containersOf distributes the cards to the containers that request some: "uuid,NVIDIA,memory,cores:" for each card, ";" between
// containers.
func containersOf(o *corev1.Pod, chosen []Chosen) string {
	var out []string
	for i := range o.Spec.Containers {
		x, ok, err := askedShare(&o.Spec.Containers[i])
		if !ok || err != nil {
			continue
		}
		n := min(int(x.Count), len(chosen))
		var text strings.Builder
		for _, c := range chosen[:n] {
			fmt.Fprintf(&text, "%s,NVIDIA,%d,%d:", c.UUID, c.Memory/Unit, c.Milli*fullCores/wholeCard)
		}
		out, chosen = append(out, text.String()), chosen[n:]
	}
	return strings.Join(out, ";")
}

// Forget removes what a binding wrote.
func Forget(annotations map[string]string) {
	for _, key := range []string{
		IndexAnnotation, predicateAnnotation, shareIDsAnnotation, allocateAnnotation, shareNodeAnnotation, shareTimeAnnotation,
		bindTimeAnnotation, bindPhaseAnnotation,
	} {
		delete(annotations, key)
	}
}
