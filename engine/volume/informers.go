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

	"github.com/celsius-scheduler/celsius/engine/model"
)

// still is an informer that nobody starts: it is as up to date as what is put into its indexer.
type still struct {
	cache.SharedIndexInformer // nil: nothing else of it is called
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

// ordered is an indexer that lists by name, so that the same state gives the same answer.
type ordered struct{ cache.Indexer }

// List implements cache.Store.
func (o ordered) List() []any { return byName(o.Indexer.List()) }

// ByIndex implements cache.Indexer.
func (o ordered) ByIndex(index, value string) ([]any, error) {
	items, err := o.Indexer.ByIndex(index, value)
	return byName(items), err
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

// newInformers makes a factory that knows informers of all that the plugins look at, and their indexers by kind.
func newInformers() (informers.SharedInformerFactory, map[string]cache.Indexer) {
	factory, indexers := informers.NewSharedInformerFactory(nil, 0), map[string]cache.Indexer{}
	for kind, empty := range map[string]runtime.Object{
		model.PersistentVolume: &corev1.PersistentVolume{},
		model.VolumeClaim:      &corev1.PersistentVolumeClaim{},
		model.StorageClass:     &storagev1.StorageClass{},
		model.CSINode:          &storagev1.CSINode{},
		model.CSIDriver:        &storagev1.CSIDriver{},
		model.StorageCapacity:  &storagev1.CSIStorageCapacity{},
		model.VolumeAttachment: &storagev1.VolumeAttachment{},
		// These two are only read while a binding is waited for, which is not done here.
		"Pod":  &corev1.Pod{},
		"Node": &corev1.Node{},
	} {
		indexer := ordered{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
		indexers[kind] = indexer
		factory.InformerFor(empty, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return still{indexer: indexer} })
	}
	return factory, indexers
}
