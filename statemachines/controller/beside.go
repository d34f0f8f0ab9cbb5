package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batchv1alpha1 "github.com/celsius-scheduler/celsius/crds/batch/v1alpha1"
	"github.com/celsius-scheduler/celsius/rules/typed"
	"github.com/celsius-scheduler/celsius/statemachines"
	"github.com/celsius-scheduler/celsius/statemachines/jobplugin"
)

// status.controlledResources records what a job's plugins created in addition to its pods. The controllers use it to find these objects
// again, and to delete them when the job's pods are killed, even if the plugins have changed since then.
//
//	plugin-svc = svc                             Volcano's entry of a plugin with objects
//	celsius.dev/plugins = 3/1f0c2d3e             job generation and digest of the plugins that the objects were created from
//	celsius.dev/made.v1.Secret.job-a-ssh = UID   an object
//	celsius.dev/made.v1.Secret.job-a-ssh = unknown   an object that is being created, or was created by a controller that crashed
const (
	pluginKey  = "plugin-"
	pluginsKey = "celsius.dev/plugins"
	madeKey    = "celsius.dev/made."
)

// ofUnknown replaces the UID of an object that the controllers may not read. It is written before the object is created, so that an object
// that exists later is known to be the job's own. Such an object is deleted together with the Job.
const ofUnknown = "unknown"

// lookAgain is the interval at which the controller looks again for objects that it does not watch.
const lookAgain = 15 * time.Second

// isBeside reports whether an entry of controlledResources records what plugins created.
func isBeside(key string) bool {
	return key == pluginsKey || strings.HasPrefix(key, madeKey) || strings.HasPrefix(key, pluginKey)
}

// madeEntry returns the key of an object's entry.
func madeEntry(m *jobplugin.Made) string { return madeKey + m.APIVersion + "." + m.Kind + "." + m.Name }

// madeObject returns the object of an entry with the fields that its deletion needs, or nil if the key cannot be parsed.
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

// pluginsOf returns the plugins of a job, compiled once per reconcile, or the mistake of the job that the plugins cannot work with.
func (r *jobs) pluginsOf(w *world) (*jobplugin.Run, *waiting) {
	if w.plugins == nil && len(w.job.Spec.Plugins) > 0 {
		run, err := r.options.JobPlugins.For(w.job)
		if err != nil {
			return nil, &waiting{pluginError, err.Error(), true}
		}
		w.plugins = run
	}
	return w.plugins, nil
}

// of returns the job generation and the digest of the plugins, from which the additional objects are created.
func (b besides) of() string {
	return strconv.FormatInt(b.job.Generation, 10) + "/" + b.options.JobPlugins.Stamp(b.job)
}

// current reports whether the objects of the plugins match the job's spec and the plugins.
func (b besides) current() bool {
	return len(b.job.Spec.Plugins) == 0 || b.job.Status.ControlledResources[pluginsKey] == b.of()
}

// besideIsVolcanos reports whether Volcano created the objects of the plugins. They stay unchanged until pods are created.
func besideIsVolcanos(job *batchv1alpha1.Job) bool {
	made := job.Status.ControlledResources
	for name := range job.Spec.Plugins {
		if made[pluginKey+name] == "" {
			return false
		}
	}
	return made[pluginsKey] == ""
}

// pluginsFailed returns why a job waits if its plugins failed. A row that fails does so until the job or the plugin changes.
func (w *world) pluginsFailed(err error) (*waiting, error) {
	wait := &waiting{pluginError, err.Error(), true}
	var row *jobplugin.RowError
	switch {
	case errors.As(err, &row):
		return wait, nil
	case errors.Is(err, errTaken):
		w.again = sooner(w.again, lookAgain)
		return wait, nil
	}
	return wait, err
}

// bring creates or updates the objects of the plugins.
func (b besides) bring(ctx context.Context, run *jobplugin.Run) error {
	made, err := run.Objects()
	if err != nil {
		return err
	}
	fresh := map[string]string{}
	for _, m := range made {
		if key := madeEntry(m); m.Once() && b.job.Status.ControlledResources[key] == "" && !besideIsVolcanos(b.job) {
			fresh[key] = ofUnknown
		}
	}
	if len(fresh) > 0 {
		b.beside = b.besideNow()
		maps.Copy(b.beside, fresh)
		now := b.job.Status.State
		stays := transition{outcome: statemachines.Outcome{Phase: string(now.Phase)}, cause: cause{action: b.machine.Otherwise()}}
		if isWaiting(now.Reason) {
			stays.wait = &waiting{now.Reason, now.Message, false}
		}
		if err := b.write(ctx, b.world, stays); err != nil {
			return err
		}
	}
	return b.bringAll(ctx, run, made, fresh)
}

// besideNow returns the entries of the status about objects of plugins.
func (w *world) besideNow() map[string]string {
	entries := maps.Clone(w.job.Status.ControlledResources)
	maps.DeleteFunc(entries, func(key, _ string) bool { return !isBeside(key) })
	if entries == nil {
		entries = map[string]string{}
	}
	return entries
}

// besides manages the objects that plugins create for one job.
type besides struct {
	*jobs
	*world
}

// bringAll creates or updates the given objects. fresh contains the entries of objects that may be created only once, and that no reconcile
// has tried to create.
func (b besides) bringAll(ctx context.Context, run *jobplugin.Run, made []*jobplugin.Made, fresh map[string]string) error {
	entries := map[string]string{}
	for _, m := range made {
		key := madeEntry(m)
		uid, err := b.bringOne(ctx, m, fresh[key] != "")
		if err == nil || !errors.Is(err, errTaken) {
			delete(fresh, key)
		}
		if err != nil { // record the objects created so far, and drop the entries of objects that were not tried
			b.beside = b.besideNow()
			maps.Copy(b.beside, entries)
			maps.DeleteFunc(b.beside, func(key, _ string) bool { return fresh[key] != "" })
			return err
		}
		entries[key] = string(uid)
	}
	entries[pluginsKey] = b.of()
	for _, name := range run.Plugins() {
		entries[pluginKey+name] = name
	}
	if err := b.delete(ctx, b.job.Status.ControlledResources, func(key string) bool { return entries[key] == "" }); err != nil {
		return err
	}
	b.beside = entries
	return nil
}

// errTaken reports that the name of a required object is taken. The controllers may not read the existing object, so its owner is unknown.
var errTaken = errors.New("is there already, and it cannot be seen whether it is the job's")

// bringOne creates an object, or updates the job's own object of that name. fresh states that no reconcile has tried to create it.
func (b besides) bringOne(ctx context.Context, m *jobplugin.Made, fresh bool) (types.UID, error) {
	known := b.job.Status.ControlledResources[madeEntry(m)]
	if m.Once() {
		if known != "" && known != ofUnknown {
			return types.UID(known), nil
		}
		uid, err := b.makeOne(ctx, m)
		switch {
		case !apierrors.IsAlreadyExists(err):
			return uid, err
		case fresh:
			return "", fmt.Errorf("job plugin %s: the %s %s %w; delete it, or call the job something else", m.Plugin, m.Kind, m.Name, errTaken)
		}
		return ofUnknown, nil
	}
	if known == "" {
		if uid, err := b.makeOne(ctx, m); !apierrors.IsAlreadyExists(err) {
			return uid, err
		}
	}
	stored, err := b.read(ctx, m)
	if err != nil {
		return "", err
	}
	if stored == nil {
		if known == "" {
			return "", errBehind // it existed a moment ago
		}
		return b.makeOne(ctx, m)
	}
	return stored.GetUID(), b.update(ctx, m, stored)
}

// makeOne creates an object.
func (b besides) makeOne(ctx context.Context, m *jobplugin.Made) (types.UID, error) {
	object, err := m.Render()
	if err != nil {
		return "", err
	}
	if err := b.client.Create(ctx, object, client.FieldOwner(fieldManager)); err != nil {
		return "", fmt.Errorf("make %s %s: %w", m.Kind, m.Name, err)
	}
	return object.GetUID(), nil
}

// update updates an object if it differs from what the plugin wants.
func (b besides) update(ctx context.Context, m *jobplugin.Made, stored *unstructured.Unstructured) error {
	wanted, err := m.Render()
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	next.Object = overlaid(stored.Object, wanted.Object)
	if typed.Same(stored.Object, next.Object) {
		return nil
	}
	if err := b.client.Patch(ctx, next, client.MergeFrom(stored), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("update %s %s: %w", m.Kind, m.Name, err)
	}
	return nil
}

// read reads an object. It returns nil if the object does not exist, and an error if the object does not belong to the job.
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

// overlaid returns under with the fields of over. It replaces data as a whole, because no other writer owns a part of it.
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

// delete deletes the recorded objects whose keys which selects.
func (b besides) delete(ctx context.Context, made map[string]string, which func(key string) bool) error {
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

// clear deletes all objects of the plugins when the job's pods are killed. Objects that Volcano created, or that may not be read, stay:
// they are used again, and are deleted with the job. clear runs before the PodGroup is deleted.
func (b besides) clear(ctx context.Context) error {
	left := b.besideNow()
	if len(b.job.Spec.Plugins) > 0 && besideIsVolcanos(b.job) {
		return nil
	}
	if err := b.addUnwritten(ctx, left); err != nil || len(left) == 0 {
		return err
	}
	if err := b.delete(ctx, left, func(string) bool { return true }); err != nil {
		return err
	}
	maps.DeleteFunc(left, func(_, uid string) bool { return uid != ofUnknown })
	b.beside = left
	return nil
}

// addUnwritten adds objects that plugins created but the status does not record, because the controllers crashed in between. It only
// searches while a PodGroup exists, because no object is created without one.
func (b besides) addUnwritten(ctx context.Context, to map[string]string) error {
	if b.group == nil || b.current() {
		return nil
	}
	run, wait := b.pluginsOf(b.world)
	if wait != nil {
		return nil // then no object was created, either
	}
	made, err := run.Objects()
	if err != nil {
		return nil //nolint:nilerr // as before
	}
	for _, m := range made {
		if key := madeEntry(m); !m.Once() && to[key] == "" { // objects that are created once are recorded before their creation
			stored, err := b.read(ctx, m)
			if err != nil && !errors.Is(err, errForeign) {
				return err
			}
			if stored != nil {
				to[key] = string(stored.GetUID())
			}
		}
	}
	return nil
}

// enterBeside writes the entries of plugin objects into a status if they changed.
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
