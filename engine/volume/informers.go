package volume

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/celsius-scheduler/celsius/engine/model"
)

// still is an informer that is never started. It contains what is put into its indexer.
type still struct {
	cache.SharedIndexInformer // nil: no other method is called
	indexer                   cache.Indexer
}

// GetIndexer implements cache.SharedIndexInformer.
func (s still) GetIndexer() cache.Indexer { return s.indexer }

// GetStore implements cache.SharedIndexInformer.
func (s still) GetStore() cache.Store { return s.indexer }

// AddIndexers implements cache.SharedIndexInformer.
func (s still) AddIndexers(i cache.Indexers) error { return s.indexer.AddIndexers(i) }

// AddEventHandler implements cache.SharedIndexInformer: there are no events, because assumptions never outlive a call.
func (still) AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return nil, nil
}

// ordered is an indexer that lists by name, so that the same state gives the same result.
type ordered struct{ cache.Indexer }

// List implements cache.Store.
func (o ordered) List() []any { return byName(o.Indexer.List()) }

// ByIndex implements cache.Indexer.
func (o ordered) ByIndex(index, value string) ([]any, error) {
	items, err := o.Indexer.ByIndex(index, value)
	return byName(items), err
}

// Indexes of volumes that this package has in addition to those of the plugins.
const (
	byClass = "storageclass" // used by the binder, which lists the volumes of a class
	byReach = "reach"        // free volumes, by class and by the one node that reaches them
	byClaim = "claim"        // other volumes, by the claim that they are for
)

// volumes is an indexer of volumes. In the list of a class, it leaves out volumes that the binder would check without effect: those of
// other claims, and those that only another node reaches. So the binder's search costs as much as there are candidates, not as much as
// there are volumes.
type volumes struct {
	ordered
	of *Volumes
}

// ByIndex implements cache.Indexer.
func (v volumes) ByIndex(index, value string) ([]any, error) {
	if index != byClass {
		return v.ordered.ByIndex(index, value)
	}
	var out []any
	for _, host := range []string{"", v.of.asked.host} {
		if host == "" && len(out) > 0 {
			break // the node has no host name
		}
		free, err := v.Indexer.ByIndex(byReach, value+"/"+host)
		if err != nil {
			return nil, err
		}
		out = append(out, free...)
	}
	for _, claim := range v.of.asked.task.Claims {
		own, err := v.Indexer.ByIndex(byClaim, claim)
		if err != nil {
			return nil, err
		}
		for _, o := range own {
			if pv, ok := o.(*corev1.PersistentVolume); ok && storagehelpers.GetPersistentVolumeClass(pv) == value {
				out = append(out, o)
			}
		}
	}
	return byName(out), nil
}

func indexReach(o any) ([]string, error) {
	pv, ok := o.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef != nil {
		return nil, nil
	}
	return []string{storagehelpers.GetPersistentVolumeClass(pv) + "/" + hostOf(pv)}, nil
}

func indexClaim(o any) ([]string, error) {
	pv, ok := o.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef == nil {
		return nil, nil
	}
	return []string{model.Key(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)}, nil
}

// hostOf returns the only host that reaches a volume, as for local volumes; "" if that is not obvious.
func hostOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil || len(pv.Spec.NodeAffinity.Required.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, e := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions {
		if e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Values[0]
		}
	}
	return ""
}

func byName(items []any) []any {
	key := func(o any) string {
		m, err := meta.Accessor(o)
		if err != nil {
			return ""
		}
		return model.Key(m.GetNamespace(), m.GetName())
	}
	slices.SortFunc(items, func(a, b any) int { return cmp.Compare(key(a), key(b)) })
	return items
}

// newInformers creates a factory with the informers of everything that the plugins read, and their indexers by kind.
func newInformers(v *Volumes) (informers.SharedInformerFactory, map[string]cache.Indexer) {
	factory, indexers := informers.NewSharedInformerFactory(nil, 0), map[string]cache.Indexer{}
	for kind, empty := range map[string]runtime.Object{
		model.PersistentVolume: &corev1.PersistentVolume{},
		model.VolumeClaim:      &corev1.PersistentVolumeClaim{},
		model.StorageClass:     &storagev1.StorageClass{},
		model.CSINode:          &storagev1.CSINode{},
		model.CSIDriver:        &storagev1.CSIDriver{},
		model.StorageCapacity:  &storagev1.CSIStorageCapacity{},
		model.VolumeAttachment: &storagev1.VolumeAttachment{},
		// These two are only read during the wait for a binding, which this package does not do.
		"Pod":  &corev1.Pod{},
		"Node": &corev1.Node{},
	} {
		var indexer cache.Indexer = ordered{
			cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}),
		}
		if kind == model.PersistentVolume {
			indexer = volumes{ordered{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{byReach: indexReach, byClaim: indexClaim})}, v}
		}
		indexers[kind] = indexer
		factory.InformerFor(empty, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return still{indexer: indexer} })
	}
	return factory, indexers
}
