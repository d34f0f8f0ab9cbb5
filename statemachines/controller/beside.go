package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// What a job's plugins made beside it stands in status.controlledResources, so that it is found again, and goes when the job's pods are
// killed, whatever the plugins say by then.
//
//	plugin-svc = svc                             Volcano's entry of a plugin whose objects are made
//	celsius.dev/plugins = 3                      the generation of the job of which they are
//	celsius.dev/made.v1.Secret.job-a-ssh = UID   an object
const (
	pluginKey  = "plugin-"
	pluginsKey = "celsius.dev/plugins"
	madeKey    = "celsius.dev/made."
)

// ofUnknown stands for the UID of an object that was there already and may not be read: it is used, and goes with the Job if it is the Job's.
const ofUnknown = "unknown"

// isBeside says whether an entry of controlledResources is about what plugins made.
func isBeside(key string) bool {
	return key == pluginsKey || strings.HasPrefix(key, madeKey) || strings.HasPrefix(key, pluginKey)
}

// madeEntry is the key of an object.
func madeEntry(m *jobplugin.Made) string { return madeKey + m.APIVersion + "." + m.Kind + "." + m.Name }

// madeObject is the object of an entry, as far as its deletion needs it; nil: it cannot be read.
func madeObject(namespace, key string) *unstructured.Unstructured {
	rest, _ := strings.CutPrefix(key, madeKey)
	for _, kind := range jobplugin.Kinds() {
		version, word, _ := strings.Cut(kind, " ")
		if name, ok := strings.CutPrefix(rest, version+"."+word+"."); ok {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion(version)
			u.SetKind(word)
			u.SetNamespace(namespace)
			u.SetName(name)
			return u
		}
	}
	return nil
}

// pluginsOf puts the plugins of a job to work, once a reconcile. An error says what of the job they cannot work with.
func (r *jobs) pluginsOf(w *world) (*jobplugin.Run, error) {
	if w.plugins == nil && len(w.job.Spec.Plugins) > 0 {
		run, err := r.options.JobPlugins.For(w.job)
		if err != nil {
			return nil, err
		}
		w.plugins = run
	}
	return w.plugins, nil
}

// besideIsCurrent says whether what plugins make beside a job is as the job's spec wants it.
func besideIsCurrent(job *batchv1alpha1.Job) bool {
	return len(job.Spec.Plugins) == 0 || job.Status.ControlledResources[pluginsKey] == strconv.FormatInt(job.Generation, 10)
}

// besides cares for what plugins make beside one job.
type besides struct {
	*parts
	*world
}

// bring makes what plugins make, or brings it in line.
func (b besides) bring(ctx context.Context, run *jobplugin.Run) error {
	objects, err := run.Objects()
	if err != nil {
		return err
	}
	entries := map[string]string{}
	for _, m := range objects {
		uid, err := b.bringOne(ctx, m)
		if err != nil { // what is made until then is known to be
			for key, value := range b.job.Status.ControlledResources {
				if isBeside(key) && entries[key] == "" {
					entries[key] = value
				}
			}
			b.beside = entries
			return err
		}
		entries[madeEntry(m)] = string(uid)
	}
	entries[pluginsKey] = strconv.FormatInt(b.job.Generation, 10)
	for _, name := range run.Plugins() {
		entries[pluginKey+name] = name
	}
	if err := b.delete(ctx, func(key string) bool { return entries[key] == "" }); err != nil {
		return err
	}
	b.beside = entries
	return nil
}

// bringOne makes an object, or brings the job's own of that name in line.
func (b besides) bringOne(ctx context.Context, m *jobplugin.Made) (types.UID, error) {
	var stored *unstructured.Unstructured
	if uid := b.job.Status.ControlledResources[madeEntry(m)]; uid != "" {
		if m.Once() {
			return types.UID(uid), nil
		}
		var err error
		if stored, err = b.read(ctx, m); err != nil {
			return "", err
		}
	}
	if stored == nil {
		object, err := m.Render()
		if err != nil {
			return "", err
		}
		err = b.client.Create(ctx, object, client.FieldOwner(fieldManager))
		switch {
		case err == nil:
			return object.GetUID(), nil
		case !apierrors.IsAlreadyExists(err):
			return "", fmt.Errorf("make %s %s: %w", m.Kind, m.Name, err)
		case m.Once():
			// Made by a controller that died before it wrote that down, or somebody else's, in the job's own namespace: it may not be read.
			return ofUnknown, nil
		}
		if stored, err = b.read(ctx, m); err != nil {
			return "", err
		}
		if stored == nil {
			return "", errBehind
		}
	}
	wanted, err := m.Render()
	if err != nil {
		return "", err
	}
	next := stored.DeepCopy()
	next.Object = overlaid(stored.Object, wanted.Object)
	if typed.Same(stored.Object, next.Object) {
		return stored.GetUID(), nil
	}
	if err := b.client.Patch(ctx, next, client.MergeFrom(stored), client.FieldOwner(fieldManager)); err != nil {
		return "", fmt.Errorf("update %s %s: %w", m.Kind, m.Name, err)
	}
	return stored.GetUID(), nil
}

// read reads an object; nil: there is none. One that is not the job's is an error: it is left alone.
func (b besides) read(ctx context.Context, m *jobplugin.Made) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion(m.APIVersion)
	found.SetKind(m.Kind)
	err := b.live.Get(ctx, types.NamespacedName{Namespace: b.job.Namespace, Name: m.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", m.Kind, m.Name, err)
	case !metav1.IsControlledBy(found, b.job):
		return nil, fmt.Errorf("job plugin %s: the %s %s %w; delete it, or call the job something else", m.Plugin, m.Kind, m.Name, errForeign)
	}
	return found, nil
}

// overlaid is an object with all that another says: data, which nobody else has a part in, as a whole.
func overlaid(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for key, value := range over {
		was, wasMap := out[key].(map[string]any)
		is, isMap := value.(map[string]any)
		if wasMap && isMap && key != "data" {
			value = overlaid(was, is)
		}
		out[key] = value
	}
	return out
}

// delete deletes what plugins made beside a job, as far as which says so.
func (b besides) delete(ctx context.Context, which func(key string) bool) error {
	made := b.job.Status.ControlledResources
	for _, key := range slices.Sorted(maps.Keys(made)) {
		if !strings.HasPrefix(key, madeKey) || !which(key) {
			continue
		}
		object, uid := madeObject(b.job.Namespace, key), types.UID(made[key])
		if object == nil || uid == ofUnknown {
			continue
		}
		err := b.client.Delete(ctx, object, client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// clear deletes all that plugins made beside a job, whose pods are killed.
func (b besides) clear(ctx context.Context) error {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(b.job.Status.ControlledResources)), isBeside) {
		return nil
	}
	if err := b.delete(ctx, func(string) bool { return true }); err != nil {
		return err
	}
	b.beside = map[string]string{}
	return nil
}

// enterBeside writes what plugins made into a status, where that changed.
func (w *world) enterBeside(s *batchv1alpha1.JobStatus) {
	if w.beside == nil {
		return
	}
	next := map[string]string{}
	for key, value := range s.ControlledResources {
		if !isBeside(key) {
			next[key] = value
		}
	}
	maps.Copy(next, w.beside)
	if s.ControlledResources = next; len(next) == 0 {
		s.ControlledResources = nil
	}
}
